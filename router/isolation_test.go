package router_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
)

// Every way of asking must be answered by the shard itself, whatever its connection was used for before.
var questions = []struct {
	name string
	ask  func(ctx context.Context, s router.Shard) (owner int64, err error)
}{
	{"QueryRow", func(ctx context.Context, s router.Shard) (owner int64, err error) {
		err = s.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner)
		return owner, err
	}},
	{"Query without arguments", func(ctx context.Context, s router.Shard) (owner int64, err error) {
		rows, err := s.Query(ctx, `select owner from photos`)
		if err != nil {
			return 0, err
		}
		return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	}},
	{"exec mode", func(ctx context.Context, s router.Shard) (owner int64, err error) {
		err = s.QueryRow(ctx, `select owner from photos where id = $1`, pgx.QueryExecModeExec, 1).Scan(&owner)
		return owner, err
	}},
	{"Exec with arguments", func(ctx context.Context, s router.Shard) (int64, error) {
		tag, err := s.Exec(ctx, `update photos set title = 'seen' where id = $1 and owner = $2`, 1, int64(s.Number()))
		return int64(s.Number())*tag.RowsAffected() + tag.RowsAffected() - 1, err
	}},
	{"Exec without arguments", func(ctx context.Context, s router.Shard) (int64, error) {
		sql := fmt.Sprintf(`select 1; update photos set title = 'seen' where owner = %d`, s.Number())
		tag, err := s.Exec(ctx, sql)
		return int64(s.Number())*tag.RowsAffected() + tag.RowsAffected() - 1, err
	}},
	{"batch", func(ctx context.Context, s router.Shard) (owner int64, err error) {
		var batch pgx.Batch
		batch.Queue(`select 1`)
		batch.Queue(`select owner from photos where id = $1`, 1).QueryRow(func(row pgx.Row) error { return row.Scan(&owner) })
		return owner, s.SendBatch(ctx, &batch).Close()
	}},
	{"transaction", func(ctx context.Context, s router.Shard) (owner int64, err error) {
		err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner)
		})
		return owner, err
	}},
	{"raw connection of a transaction", func(ctx context.Context, s router.Shard) (owner int64, err error) {
		err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return tx.Conn().QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner)
		})
		return owner, err
	}},
	{"CopyFrom", func(ctx context.Context, s router.Shard) (owner int64, err error) {
		source := pgx.CopyFromRows([][]any{{int64(-1), int64(s.Number()), "copied"}})
		if _, err := s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "owner", "title"}, source); err != nil {
			return 0, err
		}
		err = s.QueryRow(ctx, `delete from photos where id = $1 returning owner`, -1).Scan(&owner)
		return owner, err
	}},
}

func TestShardsNeverMix(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{})
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			b, ctx := setup(t, options{on: db, dsn: execMode(mode)})
			askAll(ctx, t, b)
		})
	}
}

// hooks of a pool that leave a session set to another shard, with a table of its own that hides photos wherever a path
// lets it.
var hooks = map[string]func(*pgxpool.Config){
	"PrepareConn": func(cfg *pgxpool.Config) {
		cfg.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
			_, err := conn.Exec(ctx, poison)
			return true, err
		}
	},
	"BeforeAcquire": func(cfg *pgxpool.Config) {
		cfg.BeforeAcquire = func(ctx context.Context, conn *pgx.Conn) bool { //nolint:staticcheck // services have it
			_, err := conn.Exec(ctx, poison)
			return err == nil
		}
	},
	"AfterRelease": func(cfg *pgxpool.Config) {
		cfg.AfterRelease = func(conn *pgx.Conn) bool {
			_, err := conn.Exec(context.Background(), poison)
			return err == nil
		}
	},
}

func TestPoisonedConnections(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{})
	for name, hook := range hooks {
		for _, mode := range modes {
			t.Run(name+", "+mode, func(t *testing.T) {
				b, ctx := setup(t, options{on: db, dsn: execMode(mode), pool: hook})
				askAll(ctx, t, b)
			})
		}
	}
}

const poison = `create temp table if not exists photos as select * from shard_00063.photos;
set search_path = pg_temp, shard_00063, pg_catalog`

// askAll asks all shards from 16 goroutines, so that four connections change hands all the time.
func askAll(ctx context.Context, t *testing.T, b *testBundle) {
	t.Helper()
	const workers, rounds = 16, 24
	var wait sync.WaitGroup
	errs := make([]error, workers)
	locks := make([]sync.Mutex, shardCount) // CopyFrom is seen by the others
	for w := range workers {
		wait.Go(func() {
			for i := range rounds {
				s := b.shard(t, (w*7+i*5)%shardCount)
				q := questions[(w+i)%len(questions)]
				locks[s.Number()].Lock()
				owner, err := q.ask(ctx, s)
				locks[s.Number()].Unlock()
				if err != nil || owner != int64(s.Number()) {
					errs[w] = fmt.Errorf("%s: %s was answered with owner %d: %w", q.name, s, owner, err)
					return
				}
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
