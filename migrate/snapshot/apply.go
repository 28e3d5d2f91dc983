package snapshot

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// Config is the shards that [Apply] makes, and how.
type Config struct {
	Snapshot *Snapshot
	Shards   shards.Set      // at version 0
	PerHost  int             // shards of one host at a time. Defaults to 2
	Grace    time.Duration   // how long shards under way may go on after an interrupt. Defaults to 30 s
	Progress fanout.Progress // Defaults to none
}

// Apply takes shards from version 0 to the snapshot's version, each in one transaction and one round trip, and returns
// those that are done. The error is a [shards.PartialError], as of [fanout.Run]; a failed shard is unchanged. The
// commits do not wait for the disk, so a crash of the server may undo a shard, always as a whole.
func Apply(ctx context.Context, cfg Config) (shards.Set, error) {
	m := cfg.Snapshot.m
	return fanout.Run(ctx, fanout.Config[*pgx.Conn]{
		Map: m,
		Open: func(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
			conn, err := drift.Connect(ctx, host)
			if err != nil {
				return nil, err
			}
			if err := keepLedger(ctx, conn); err != nil {
				_ = conn.Close(ctx)
				return nil, err
			}
			return conn, nil
		},
		Close: func(ctx context.Context, conn *pgx.Conn) { _ = conn.Close(ctx) },
		Alive: func(conn *pgx.Conn) bool { return !conn.IsClosed() },
		Do: func(ctx context.Context, conn *pgx.Conn, batch []shards.Number) []error {
			return []error{run(ctx, conn, cfg.Snapshot.Script(batch[0], ""))}
		},
		PerHost: cfg.PerHost, Grace: cfg.Grace, Progress: cfg.Progress,
	}, fanout.Plan(m, cfg.Shards))
}

// run runs a script. After an error it resets the session, or closes it.
func run(ctx context.Context, conn *pgx.Conn, script string) error {
	_, err := conn.PgConn().Exec(ctx, script).ReadAll()
	if err != nil && !conn.IsClosed() {
		if _, rollbackErr := conn.PgConn().Exec(ctx, "rollback").ReadAll(); rollbackErr != nil {
			_ = conn.Close(ctx) // unusable; the server rolls back by itself
		}
	}
	return err
}
