package routes

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// querier is a shard or a pgxpool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// statement is what both sides run.
type statement struct {
	text func(prefix string) string // the prefix goes before the names of tables
	run  func(ctx context.Context, on querier, text string, owner int64, worker, i int) (ignored bool, err error)
}

// plain runs the statement in shard 0 through a pgxpool.
func (st statement) plain(pool *pgxpool.Pool) call {
	text := st.text("shard_00000.")
	return func(ctx context.Context, worker, i int) (bool, error) { return st.run(ctx, pool, text, 0, worker, i) }
}

// routed runs the statement through a router, in turn in the shards of keys 0 to keys-1.
func (st statement) routed(r *router.Router, keys int) call {
	text := st.text("")
	return func(ctx context.Context, worker, i int) (bool, error) {
		key := int64((worker + i) % keys)
		shard, err := forKey(ctx, r, key)
		if err != nil {
			return false, err
		}
		return st.run(ctx, shard, text, key, worker, i)
	}
}

// selects is a select by primary key.
var selects = statement{photoByID, func(ctx context.Context, on querier, text string, owner int64, worker, i int) (bool, error) {
	return false, selectPhoto(ctx, on, text, 1+(7*worker+i)%photosPerShard, owner)
}}

// slowEvery is how often [mixed] is slow: once in slowEvery calls.
const slowEvery = 500

// mixed is a select by primary key, and now and then a slow call, whose latency is ignored.
var mixed = statement{photoByID, func(ctx context.Context, on querier, text string, owner int64, worker, i int) (bool, error) {
	if (61*worker+i)%slowEvery == slowEvery-1 { // not all goroutines at once
		_, err := on.Exec(ctx, "select pg_sleep(0.05)")
		return true, err
	}
	return selects.run(ctx, on, text, owner, worker, i)
}}

// inserts is an insert of one row, with a key from the database.
var inserts = statement{
	func(prefix string) string {
		return "insert into " + prefix + "notes (author, body) values ($1, $2) returning author"
	},
	func(ctx context.Context, on querier, text string, _ int64, worker, _ int) (bool, error) {
		var author int64
		err := on.QueryRow(ctx, text, int64(worker), "a note of some forty characters, or so").Scan(&author)
		if err == nil && author != int64(worker) {
			err = fmt.Errorf("inserted author %d, expected %d", author, worker)
		}
		return false, err
	},
}

// photoByID is the text of [selects].
func photoByID(prefix string) string {
	return "select owner, title from " + prefix + "photos where id = $1"
}

// errWrongShard reports a row that came from another shard than the one queried.
var errWrongShard = errors.New("a row of another shard")

// selectPhoto selects by primary key and checks the row.
func selectPhoto(ctx context.Context, on querier, text string, id int, owner int64) error {
	var got int64
	var title string
	if err := on.QueryRow(ctx, text, id).Scan(&got, &title); err != nil {
		return err
	}
	if got != owner {
		return fmt.Errorf("%w: its owner is %d instead of %d", errWrongShard, got, owner)
	}
	return nil
}

func forKey(ctx context.Context, r *router.Router, key int64) (router.Shard, error) {
	return r.ForKey(ctx, shards.NumberKey(key))
}
