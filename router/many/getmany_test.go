package many_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

func byID() many.Query[photo] {
	return many.Query[photo]{
		SQL:  `select id, owner, title from photos where id = any($1)`,
		Scan: pgx.RowToStructByPos[photo],
	}
}

// GetMany returns the same rows as a loop that queries each ID.
func TestGetManyIsTheLoop(t *testing.T) {
	t.Parallel()
	db, ctx := setup(t, options{hosts: 2})
	all := rowsOf(db.fill(ctx, t), db.All())
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			b, ctx := setup(t, options{on: db, mode: mode})
			id := rapid.Custom(func(rt *rapid.T) shards.ID {
				if rapid.IntRange(0, 5).Draw(rt, "kind") == 0 { // an ID of some shard that most likely has no row
					return shards.ID(rapid.Int64Range(0, shardCount<<10-1).Draw(rt, "ID"))
				}
				return all[rapid.IntRange(0, len(all)-1).Draw(rt, "row")].ID
			})
			rapid.Check(t, func(rt *rapid.T) {
				ids := rapid.SliceOfN(id, 0, 30).Draw(rt, "IDs")
				q := byID()
				q.PerHost = rapid.IntRange(0, 3).Draw(rt, "PerHost")
				got, err := many.GetMany(ctx, b.Router, ids, q)
				if err != nil {
					rt.Fatal(err)
				}
				var want []photo
				for _, id := range ids {
					s, err := b.ForID(id)
					if err != nil {
						rt.Fatal(err)
					}
					var p photo
					err = s.QueryRow(ctx, `select id, owner, title from photos where id = $1`, id).Scan(&p.ID, &p.Owner, &p.Title)
					if err == nil {
						want = append(want, p)
					} else if !errors.Is(err, pgx.ErrNoRows) {
						rt.Fatal(err)
					}
				}
				if !slices.Equal(got, want) {
					rt.Errorf("got %v, want %v", got, want)
				}
			})
			b.allFree(ctx, t, 4)
		})
	}
}

// The statement has more arguments and returns several rows for an ID. A repeated ID is sent once.
func TestGetManyRows(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})
	all := b.fill(ctx, t)
	a, z := all[3][1].ID, all[60][0].ID
	type numbered struct {
		ID shards.ID
		N  int
	}
	got, err := many.GetMany(ctx, b.Router, []shards.ID{z, a, z}, many.Query[numbered]{
		SQL:  `select id, n * cardinality($1::bigint[]) from photos, generate_series(1, $2) n where id = any($1) order by n desc`,
		Args: []any{2},
		Scan: pgx.RowToStructByPos[numbered],
	})
	if want := []numbered{{z, 2}, {z, 1}, {a, 2}, {a, 1}, {z, 2}, {z, 1}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: %v", got, want, err)
	}
}

func TestGetManyFromDeadHost(t *testing.T) {
	t.Parallel()
	b, ctx := withDeadHost(t, options{})
	there := shards.ID(1) // an ID of shard 0, which has a row with it
	ids := []shards.ID{40<<10 | 1, there, 33 << 10, 40<<10 | 1, 63 << 10, 5 << 10}
	rows, err := many.GetMany(ctx, b.Router, ids, byID())
	if len(rows) != 1 || rows[0].ID != there {
		t.Errorf("got %v", rows)
	}
	isPartial(t, err, parse(t, "0,5,33,40,63"), "0,5", "33", "40,63")
	isHostError(t, err, "pg-b")
	isUnread(t, err, 40<<10|1, 33<<10, 63<<10)
	if !strings.HasPrefix(err.Error(), "3 IDs could not be read: 2 of 5 shards done, 1 failed, 2 not attempted: host pg-b") {
		t.Errorf("got %v", err)
	}
}

func isUnread(t *testing.T, err error, want ...shards.ID) {
	t.Helper()
	var unread *many.UnreadError
	if !errors.As(err, &unread) || !slices.Equal(unread.IDs, want) {
		t.Errorf("got %v, want an UnreadError for %v", err, want)
	}
}

func TestGetManyWithoutATable(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})
	all := b.fill(ctx, t)
	b.run(ctx, t, `drop table shard_00005.photos`)
	ids := []shards.ID{all[5][0].ID, all[6][1].ID, all[5][1].ID, all[50][0].ID}
	rows, err := many.GetMany(ctx, b.Router, ids, byID())
	if want := []photo{all[6][1], all[50][0]}; !slices.Equal(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
	isPartial(t, err, parse(t, "5-6,50"), "6,50", "5", "")
	isUnread(t, err, ids[0], ids[2])
}

// GetMany reports IDs that no shard can have made as unread, and reads the others.
func TestGetManyOfNoShard(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	ids := []shards.ID{-5, 1, 64 << 10, -5}
	rows, err := many.GetMany(ctx, b.Router, ids, byID())
	if len(rows) != 1 || rows[0].ID != 1 || !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("got %v, %v", rows, err)
	}
	isUnread(t, err, -5, 64<<10)
	if p := isPartial(t, err, parse(t, "0"), "0", "", ""); len(p.Causes) != 1 || p.Causes[0].Error() != "2 IDs belong to no shard: ID -5 is negative: no such shard" {
		t.Errorf("causes: %v", p.Causes)
	}

	b.run(ctx, t, `drop table shard_00000.photos`)
	rows, err = many.GetMany(ctx, b.Router, ids, byID())
	if p := isPartial(t, err, parse(t, "0"), "", "0", ""); len(rows) > 0 || sqlState(p.Failed[0]) != "42P01" || !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("got %v, %v", rows, err)
	}
	isUnread(t, err, -5, 1, 64<<10)

	q := byID()
	q.FirstError = true
	rows, err = many.GetMany(ctx, b.Router, ids, q)
	if isPartial(t, err, parse(t, "0"), "", "", "0"); len(rows) > 0 || !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("got %v, %v", rows, err)
	}
	isUnread(t, err, -5, 1, 64<<10)
}

// GetMany returns an error if the statement does not return the ID as its first column.
func TestGetManyRefuses(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	tests := []struct {
		name, sql, want string
	}{
		{"another number first", `select owner + 77, id, title from photos where id = any($1)`, "the first column must be the ID: 77 is none of those in $1"},
		{"a text first", `select title, id, owner from photos where id = any($1)`, "the first column must be the ID: can't scan"},
		{"no column", `select from photos where id = any($1)`, "the first column must be the ID: number of field descriptions"},
		{"NULL", `select null::bigint, 1, '' from photos where id = any($1)`, "the first column must be the ID: can't scan"},
		{"what does not scan", `select id, null::bigint, title from photos where id = any($1)`, "cannot scan NULL"},
	}
	for _, test := range tests {
		q := byID()
		q.SQL = test.sql
		rows, err := many.GetMany(ctx, b.Router, []shards.ID{1}, q)
		if p := isPartial(t, err, parse(t, "0"), "", "0", ""); len(rows) > 0 || !strings.Contains(p.Failed[0].Error(), test.want) {
			t.Errorf("%s: got %v, %v", test.name, rows, err)
		}
		isUnread(t, err, 1)
	}
	field := new(shards.FieldError)
	if _, err := many.GetMany(ctx, b.Router, nil, many.Query[photo]{}); !errors.As(err, &field) {
		t.Errorf("without Scan: %v", err)
	}
	if rows, err := many.GetMany(ctx, b.Router, nil, byID()); err != nil || len(rows) > 0 {
		t.Errorf("no IDs: %v, %v", rows, err)
	}
	b.allFree(ctx, t, 4)
}
