package router_test

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router/sqldb"
)

// Handles for database/sql rely on nothing that a session keeps: not behind a transaction pooler that hands its
// sessions around, each of them left in another shard.
func TestDatabaseSQLBehindTransactionPooler(t *testing.T) {
	t.Parallel()
	db, ctx := setup(t, options{})
	address := startPooler(ctx, t, db.dsns[0], 3, poison)
	for _, mode := range modes[1:] {
		t.Run(mode, func(t *testing.T) {
			b, ctx := setup(t, options{on: db, address: address, conns: 8, dsn: execMode(mode)})
			ask := func(handle *sql.DB) (alone, inside int64, err error) {
				stmt, err := handle.PrepareContext(ctx, `select owner from photos where id = $1`)
				if err != nil {
					return 0, 0, err
				}
				defer stmt.Close()
				if err := stmt.QueryRowContext(ctx, 1).Scan(&alone); err != nil {
					return 0, 0, err
				}
				tx, err := handle.BeginTx(ctx, nil)
				if err != nil {
					return 0, 0, err
				}
				err = tx.StmtContext(ctx, stmt).QueryRowContext(ctx, 1).Scan(&inside)
				return alone, inside, errors.Join(err, tx.Commit())
			}
			var wait sync.WaitGroup
			errs := make([]error, 8)
			for w := range errs {
				wait.Go(func() {
					for i := range 32 {
						n := (w*7 + i*5) % shardCount
						handle := sqldb.Open(b.shard(t, n))
						alone, inside, err := ask(handle)
						if err = errors.Join(err, handle.Close()); err != nil || alone != int64(n) || inside != int64(n) {
							errs[w] = fmt.Errorf("shard %d was answered by %d, and by %d in a transaction: %w", n, alone, inside, err)
							return
						}
					}
				})
			}
			wait.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
		})
	}
}
