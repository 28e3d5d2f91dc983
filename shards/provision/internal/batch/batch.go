// Package batch runs a function on many shards, in batches of several shards of one host.
package batch

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// Config says how many batches run at a time.
type Config struct {
	PerHost  int // sessions on each host
	Size     int // shards in a batch
	Progress fanout.Progress
}

// Run calls do with batches of the given shards, several at a time on each host. A call of do works on all shards of
// its batch or on none. Run returns the shards that are done, and the errors of [fanout.Run].
//
// If the server refuses a batch, Run calls do for each of its shards, so that one bad schema does not block the others.
func Run(
	ctx context.Context, m *shards.Map, cfg Config, numbers []shards.Number,
	do func(context.Context, *pgx.Conn, []shards.Number) error,
) (shards.Set, error) {
	return fanout.Run(ctx, fanout.Config[*pgx.Conn]{
		Map:   m,
		Open:  session.OpenToWork,
		Close: func(ctx context.Context, conn *pgx.Conn) { _ = conn.Close(ctx) },
		Alive: func(conn *pgx.Conn) bool { return !conn.IsClosed() },
		Do: func(ctx context.Context, conn *pgx.Conn, batch []shards.Number) []error {
			err := do(ctx, conn, batch)
			if err == nil || len(batch) == 1 || conn.IsClosed() || ctx.Err() != nil {
				return slices.Repeat([]error{err}, len(batch))
			}
			errs := make([]error, len(batch))
			for i := range batch {
				if errs[i] = err; !conn.IsClosed() {
					errs[i] = do(ctx, conn, batch[i:i+1])
				}
			}
			return errs
		},
		PerHost:  cfg.PerHost,
		Batch:    cfg.Size,
		Progress: cfg.Progress,
	}, fanout.Plan(m, shards.SetOf(numbers...)))
}
