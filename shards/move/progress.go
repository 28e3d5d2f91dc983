package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// watched calls copying, and says once a second how far the target is. It ends copying when works returns an error.
func (j *job) watched(ctx context.Context, works func(context.Context) error, copying func(context.Context) error) error {
	to, err := session.Open(ctx, j.dst)
	if err != nil {
		return err
	}
	defer session.Close(ctx, to)
	j.tell(Event{What: "copying", Total: j.bytes})
	began := time.Now()
	group, both := errgroup.WithContext(ctx)
	copied, done := context.WithCancel(both)
	group.Go(func() error {
		defer done()
		return copying(both)
	})
	group.Go(func() error {
		for wait.Sleep(copied, slotEvery) == nil {
			if err := works(both); err != nil {
				return err
			}
			size, err := tablesSize(both, to, j.Schema)
			if err != nil {
				return err
			}
			e := Event{What: "copying", Bytes: min(size, j.bytes), Total: j.bytes}
			if e.Bytes > 0 {
				e.Left = time.Duration(float64(time.Since(began)) * float64(e.Total-e.Bytes) / float64(e.Bytes)).Round(time.Second)
			}
			j.tell(e)
		}
		return nil
	})
	return group.Wait()
}

// measure notes how large the shard's tables are.
func (j *job) measure(ctx context.Context) error {
	return j.despiteLocks(ctx, j.from, func() error {
		return session.InTx(ctx, j.from, func(from pgx.Tx) error {
			_, err := from.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", lockedFor.Milliseconds()))
			if err == nil {
				j.bytes, err = tablesSize(ctx, from.Conn(), j.Schema)
			}
			return err
		})
	})
}

func tablesSize(ctx context.Context, conn *pgx.Conn, schema string) (bytes int64, err error) {
	const query = `SELECT coalesce(sum(pg_table_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'`
	err = conn.QueryRow(ctx, query, schema).Scan(&bytes)
	return bytes, err
}
