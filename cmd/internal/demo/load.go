package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// demoLoad is the photo service of the demo: it writes users with photos, and reads them back.
type demoLoad struct {
	router     *router.Router
	users      int
	photosEach int
	workers    int

	photos [][]shards.ID // by user, from 0

	wrote, readIDs, readUsers string // what was done, to be printed
}

// write writes every user with photos and likes: one round trip, and one transaction, a user.
func (l *demoLoad) write(ctx context.Context) error {
	const (
		insertUser   = "insert into users (id, name) values ($1, $2)"
		insertPhotos = `
			with taken as (
				insert into photos (user_id, title)
				select $1, 'photo ' || n from generate_series(1, $2::int) n
				returning id)
			insert into likes (photo_id, user_id) select id, $3 from taken returning photo_id`
	)
	l.photos = make([][]shards.ID, l.users)
	took, err := l.forAllUsers(ctx, func(ctx context.Context, user int) error {
		var batch pgx.Batch
		batch.Queue(insertUser, user, fmt.Sprintf("user %d", user))
		batch.Queue(insertPhotos, user, l.photosEach, (user+1)%l.users).Query(func(rows pgx.Rows) (err error) {
			l.photos[user], err = pgx.CollectRows(rows, pgx.RowTo[shards.ID])
			return err
		})
		shard, err := l.router.ForKey(ctx, shards.NumberKey(int64(user)))
		if err != nil {
			return err
		}
		return shard.SendBatch(ctx, &batch).Close()
	})
	l.wrote = fmt.Sprintf("%s with %s and as many likes in %s", cli.Count(l.users, "user"), cli.Count(l.users*l.photosEach, "photo"), took)
	return err
}

// readByID reads the first photo of every user by its ID alone.
func (l *demoLoad) readByID(ctx context.Context) error {
	took, err := l.forAllUsers(ctx, func(ctx context.Context, user int) error {
		id := l.photos[user][0]
		shard, err := l.router.ForID(id)
		if err != nil {
			return err
		}
		var owner int
		if err := shard.QueryRow(ctx, "select user_id from photos where id = $1", id).Scan(&owner); err != nil {
			return err
		}
		if owner != user {
			return fmt.Errorf("photo %d belongs to user %d, expected %d", id, owner, user)
		}
		return nil
	})
	l.readIDs = fmt.Sprintf("%s by ID in %s", cli.Count(l.users, "photo"), took)
	return err
}

// readByUser reads the IDs of every user's photos.
func (l *demoLoad) readByUser(ctx context.Context) error {
	took, err := l.forAllUsers(ctx, func(ctx context.Context, user int) error {
		shard, err := l.router.ForKey(ctx, shards.NumberKey(int64(user)))
		if err != nil {
			return err
		}
		rows, err := shard.Query(ctx, "select id from photos where user_id = $1 order by id", user)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[shards.ID])
		if err != nil {
			return err
		}
		if !slices.Equal(found, l.photos[user]) {
			return fmt.Errorf("user %d has photos %d, expected %d", user, found, l.photos[user])
		}
		return nil
	})
	l.readUsers = fmt.Sprintf("the photos of %s in %s", cli.Count(l.users, "user"), took)
	return err
}

// forAllUsers calls fn for every user, several at a time, and returns how long that took.
func (l *demoLoad) forAllUsers(ctx context.Context, fn func(ctx context.Context, user int) error) (time.Duration, error) {
	start := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.workers)
	for user := range l.users {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return fn(ctx, user) })
	}
	err := group.Wait()
	return time.Since(start).Round(10 * time.Millisecond), err
}
