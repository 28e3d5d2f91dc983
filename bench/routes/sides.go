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

// plainConns are the numbers of connections of the plain pools to try if the number matters. The best one counts.
var plainConns = []int{4, 8, connsPerHost}

// sides are the sides of parts with few shards of one host, each with its own connections.
type sides struct {
	plains []*pgxpool.Pool // on the schema of shard 0, one for each of conns
	conns  []int
	one    *router.Router // for shard 0 alone
	spread *router.Router // for all shards
}

func openSides(ctx context.Context, m *shards.Map, conns []int) (_ *sides, err error) {
	s := &sides{conns: conns}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, n := range conns {
		plain, err := openPlainWith(ctx, m.Hosts()[0], n)
		if err != nil {
			return nil, err
		}
		s.plains = append(s.plains, plain)
	}
	if s.one, err = openRouter(ctx, m); err != nil {
		return nil, err
	}
	s.spread, err = openRouter(ctx, m)
	return s, err
}

func (s *sides) close() {
	for _, plain := range s.plains {
		plain.Close()
	}
	for _, r := range []*router.Router{s.one, s.spread} {
		if r != nil {
			r.Close()
		}
	}
}

// querier is a shard or a plain pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// statement returns a call, with a prefix for the table names. owner is the owner of all photos there.
type statement func(prefix string) func(ctx context.Context, on querier, owner int64, worker, i int) (apart bool, err error)

// calls returns a statement's calls: of each pgxpool, of the router on one shard, and spread over all.
func (s *sides) calls(st statement) (plains []call, one, spread call) {
	qualified := st("shard_00000.")
	for _, plain := range s.plains {
		plains = append(plains, func(ctx context.Context, worker, i int) (bool, error) { return qualified(ctx, plain, 0, worker, i) })
	}
	return plains, oursOver(s.one, st, 1), oursOver(s.spread, st, int64(s.spread.Map().Len()))
}

// oursOver spreads calls over the given number of keys.
func oursOver(r *router.Router, st statement, keys int64) call {
	run := st("")
	return func(ctx context.Context, worker, i int) (bool, error) {
		key := int64(worker+i) % keys
		shard, err := forKey(ctx, r, key)
		if err != nil {
			return false, err
		}
		return run(ctx, shard, key, worker, i)
	}
}

// photoByID is the statement of [selects], with a prefix for the table name.
func photoByID(prefix string) string {
	return "select owner, title from " + prefix + "photos where id = $1"
}

// selects is a select by primary key.
func selects(prefix string) func(context.Context, querier, int64, int, int) (bool, error) {
	query := photoByID(prefix)
	return func(ctx context.Context, on querier, owner int64, worker, i int) (bool, error) {
		return false, selectPhoto(ctx, on, query, 1+(7*worker+i)%photosPerShard, owner)
	}
}

// inserts is an insert of one row, with a key from the database.
func inserts(prefix string) func(context.Context, querier, int64, int, int) (bool, error) {
	query := "insert into " + prefix + "notes (author, body) values ($1, $2) returning author"
	return func(ctx context.Context, on querier, _ int64, worker, _ int) (bool, error) {
		var author int64
		err := on.QueryRow(ctx, query, int64(worker), "a note of some forty characters, or so").Scan(&author)
		if err == nil && author != int64(worker) {
			err = fmt.Errorf("inserted author %d, expected %d", author, worker)
		}
		return false, err
	}
}

// errWrongShard reports a row that came from another shard than the one queried.
var errWrongShard = errors.New("a row of another shard")

// selectPhoto selects by primary key and checks the row.
func selectPhoto(ctx context.Context, on querier, query string, id int, owner int64) error {
	var (
		got   int64
		title string
	)
	if err := on.QueryRow(ctx, query, id).Scan(&got, &title); err != nil {
		return err
	}
	if got != owner {
		return fmt.Errorf("%w: its owner is %d instead of %d", errWrongShard, got, owner)
	}
	return nil
}
