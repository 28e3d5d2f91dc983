package router_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/testdata/sqlc/albums"
)

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate -f testdata/sqlc/sqlc.yaml

//go:embed testdata/sqlc/schema.sql
var albumsSchema string

var _ albums.DBTX = router.Shard{}

// What sqlc generated runs as it is: on handles of shards that share connections and of one on another host, and in
// transactions of theirs.
func TestSQLC(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{hosts: 2, conns: 1, dsn: execMode(mode)})
			all := []router.Shard{b.shard(t, 9), b.shard(t, 10), b.shard(t, 40)}
			for _, s := range all {
				if _, err := s.Exec(ctx, albumsSchema); err != nil {
					t.Fatal(err)
				}
			}
			for round := range 2 { // the second one meets statements that are prepared already
				for _, s := range all {
					owner := int64(s.Number())
					if err := useAlbums(ctx, albums.New(s), owner); err != nil {
						t.Errorf("%s, round %d: %v", s, round, err)
					}
					err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
						return useAlbums(ctx, albums.New(s).WithTx(tx), -owner)
					})
					if err != nil {
						t.Errorf("%s, round %d, in a transaction: %v", s, round, err)
					}
					undone := errors.New("undone")
					err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
						gone, err := albums.New(s).WithTx(tx).DeleteAlbums(ctx, owner)
						if err != nil || gone != 3 {
							return fmt.Errorf("%d rows deleted: %w", gone, err)
						}
						return undone
					})
					if !same(err, undone) {
						t.Errorf("%s, round %d: %v", s, round, err)
					}
				}
			}
			for _, s := range all {
				owner := int64(s.Number())
				list, err := albums.New(s).ListAlbums(ctx, owner)
				if err != nil || len(list) != 3 {
					t.Errorf("%s: %d albums, %v", s, len(list), err)
				}
				var count int // past the router
				host := openPlain(ctx, t, b.dsns[int(owner)*2/shardCount])
				if err := host.QueryRow(ctx, `select count(*) from `+s.Schema()+`.albums where abs(owner) = $1`, owner).Scan(&count); err != nil || count != 6 {
					t.Errorf("%s: %d rows, %v", s, count, err)
				}
			}
		})
	}
}

// useAlbums calls each kind of query that sqlc knows, and leaves three albums of the owner.
func useAlbums(ctx context.Context, q *albums.Queries, owner int64) error {
	if _, err := q.DeleteAlbums(ctx, owner); err != nil {
		return err
	}
	first, err := q.CreateAlbum(ctx, albums.CreateAlbumParams{Owner: owner, Title: "sun", SeenBy: albums.VisibilityPrivate, Tags: []string{"sea", "sky"}})
	if err != nil {
		return err
	}
	copied, err := q.CopyAlbums(ctx, []albums.CopyAlbumsParams{
		{ID: owner * 10, Owner: owner, Title: "moon", SeenBy: albums.VisibilityPublic, Tags: []string{}},
		{ID: owner*10 + 1, Owner: owner, Title: "star", SeenBy: albums.VisibilityPrivate, Tags: []string{"sky"}},
	})
	if err != nil || copied != 2 {
		return fmt.Errorf("%d rows copied: %w", copied, err)
	}
	if err := q.PublishAlbum(ctx, first.ID); err != nil {
		return err
	}
	got, err := q.GetAlbum(ctx, first.ID)
	if err != nil || got.SeenBy != albums.VisibilityPublic || got.Owner != owner || !slices.Equal(got.Tags, first.Tags) {
		return fmt.Errorf("got %+v: %w", got, err)
	}
	return useAlbumsInBatches(ctx, q, [3]int64{first.ID, owner * 10, owner*10 + 1})
}

func useAlbumsInBatches(ctx context.Context, q *albums.Queries, ids [3]int64) (err error) {
	q.RenameAlbum(ctx, []albums.RenameAlbumParams{{ID: ids[0], Title: "SUN"}, {ID: ids[1], Title: "MOON"}}).Exec(func(_ int, failed error) {
		err = errors.Join(err, failed)
	})
	var titles []string
	q.TitleOfAlbum(ctx, ids[:]).QueryRow(func(_ int, title string, failed error) {
		titles, err = append(titles, title), errors.Join(err, failed)
	})
	seen := make([][]int64, 2)
	q.AlbumsSeenBy(ctx, albums.AllVisibilityValues()).Query(func(i int, found []int64, failed error) {
		seen[i], err = found, errors.Join(err, failed)
	})
	if err != nil {
		return err
	}
	if want := []string{"SUN", "MOON", "star"}; !slices.Equal(titles, want) {
		return fmt.Errorf("titles %q, want %q", titles, want)
	}
	if !slices.Contains(seen[0], ids[2]) || !slices.Contains(seen[1], ids[0]) || !slices.Contains(seen[1], ids[1]) {
		return fmt.Errorf("seen by %v, the albums are %v", seen, ids)
	}
	return nil
}
