package session

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// Open opens a session on a host. Unqualified names in it mean only objects of Postgres itself.
func Open(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return connect.Open(ctx, host, configure)
}

// OpenAnyCluster is [Open] without a check of the host's settings. The caller compares them with the map.
func OpenAnyCluster(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return connect.OpenAnyCluster(ctx, host, configure)
}

// OpenWith is [Open] with a config that adjust changes first.
func OpenWith(ctx context.Context, host shards.Host, adjust func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	return connect.Open(ctx, host, func(cfg *pgx.ConnConfig) {
		adjust(cfg)
		configure(cfg)
	})
}

// cancelLimit limits the wait for the server to end a canceled statement.
const cancelLimit = 5 * time.Second

// OpenToWork is [Open] for a session that changes the host. When a context ends, the session cancels its statement on
// the server and waits for that, so nothing commits unnoticed.
func OpenToWork(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return OpenWith(ctx, host, func(cfg *pgx.ConnConfig) {
		cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelLimit}
		}
	})
}

func configure(cfg *pgx.ConnConfig) {
	connect.LimitLocks(cfg)
	cfg.RuntimeParams["application_name"] = "kiloshard"
	// The catalogs gain thousands of rows before an ANALYZE. Postgres then expects few rows and would join them row by
	// row.
	cfg.RuntimeParams["enable_nestloop"] = "off"
}
