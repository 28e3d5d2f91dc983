package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// watchInterval is the time between two looks at a copy.
const watchInterval = time.Second

// watched calls copying, and reports once a second how far the target is. It ends copying when check returns an error.
func (j *job) watched(ctx context.Context, check func(context.Context) error, copying func(context.Context) error) error {
	to, err := session.Open(ctx, j.dst)
	if err != nil {
		return err
	}
	defer session.Close(ctx, to)
	j.report(progress.Event{Kind: progress.Copying, What: string(progress.Copying), Total: j.bytes})
	began := time.Now()
	group, both := errgroup.WithContext(ctx)
	copied, done := context.WithCancel(both)
	group.Go(func() error {
		defer done()
		return copying(both)
	})
	group.Go(func() error {
		for wait.Sleep(copied, watchInterval) == nil {
			if err := check(both); err != nil {
				return err
			}
			size, err := rows.Size(both, to, j.Schema)
			if err != nil {
				return err
			}
			e := progress.Event{Kind: progress.Copying, What: string(progress.Copying), Bytes: min(size, j.bytes), Total: j.bytes}
			if e.Bytes > 0 {
				e.Left = time.Duration(float64(time.Since(began)) * float64(e.Total-e.Bytes) / float64(e.Bytes)).Round(time.Second)
			}
			j.report(e)
		}
		return nil
	})
	return group.Wait()
}

// measure notes how large the shard's tables are.
func (j *job) measure(ctx context.Context) error {
	return locks.Retry(ctx, j.from, j.limits(), j.Schema, func() error {
		return session.InTx(ctx, j.from, func(from pgx.Tx) error {
			_, err := from.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", locks.Timeout.Milliseconds()))
			if err == nil {
				j.bytes, err = rows.Size(ctx, from.Conn(), j.Schema)
			}
			return err
		})
	})
}

// analyze gives the target's tables first statistics: without them plans can be slow by far until an autovacuum, which comes within a minute. An old
// schema that is brought up to date has statistics.
func (j *job) analyze(ctx context.Context) {
	if j.back != nil {
		return
	}
	if err := rows.Analyze(ctx, j.dst, j.Schema); err != nil && ctx.Err() == nil {
		j.note("no statistics of the tables on %s yet: %v", j.Target, err)
	}
}

// refresh fills the materialised views of the target, or those that read unlogged tables.
func (j *job) refresh(ctx context.Context, unlogged bool) error {
	refreshed, err := rows.Refresh(ctx, j.dst, j.copied(), unlogged)
	if refreshed && err == nil {
		j.event(progress.Refreshed)
	}
	return err
}
