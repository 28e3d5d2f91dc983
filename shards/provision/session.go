package provision

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// open opens a session whose unqualified names mean Postgres's own and nothing else.
func open(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return connect.Open(ctx, host, configure)
}

// openAnyCluster is [open] for a host whose settings the caller compares with the map.
func openAnyCluster(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return connect.OpenAnyCluster(ctx, host, configure)
}

// openAt is [open] with a config that adjust changes first, such as one that connects to one of the host's addresses.
func openAt(ctx context.Context, host shards.Host, adjust func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	return connect.Open(ctx, host, func(cfg *pgx.ConnConfig) {
		adjust(cfg)
		configure(cfg)
	})
}

func configure(cfg *pgx.ConnConfig) {
	connect.LimitLocks(cfg)
	cfg.RuntimeParams["application_name"] = "kiloshard"
	// The catalogs have grown by thousands of rows that no ANALYZE has seen, so that Postgres expects
	// few of them and would join them row by row.
	cfg.RuntimeParams["enable_nestloop"] = "off"
}

// cancelLimit is how long a server may take to end a statement that is cancelled.
const cancelLimit = 5 * time.Second

// openToWork is [open] for a session whose scripts, once cancelled here, are cancelled on the server too, which is waited
// for: nothing commits that nobody knows of.
func openToWork(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return openAt(ctx, host, func(cfg *pgx.ConnConfig) {
		cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelLimit}
		}
	})
}

// params are what the SQL of a map's cluster is rendered with.
func params(m *shards.Map) sql.Params {
	c := m.Config()
	return sql.Params{
		Cluster:      c.Cluster,
		SchemaPrefix: c.SchemaPrefix,
		Epoch:        c.Epoch,
		End:          c.Layout.End(c.Epoch),
		TimeBits:     c.Layout.TimeBits(),
		ShardBits:    c.Layout.Shard,
		TypeBits:     c.Layout.Type,
		SequenceBits: c.Layout.Sequence,
	}
}

// execScript runs several statements in one transaction and one round trip. It waits [lockWait] for each lock.
func execScript(ctx context.Context, conn *pgx.Conn, script string) error {
	return endScript(ctx, conn, script, "COMMIT")
}

// endScript does the same, and ends the transaction as it is told to.
func endScript(ctx context.Context, conn *pgx.Conn, script, end string) error {
	begin := fmt.Sprintf("BEGIN; SET LOCAL check_function_bodies = off; SET LOCAL lock_timeout = %d;\n", lockWait.Milliseconds())
	_, err := conn.PgConn().Exec(ctx, begin+script+"\n"+end).ReadAll()
	if err != nil && !conn.IsClosed() {
		_, rollbackErr := conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll()
		if rollbackErr != nil {
			_ = conn.Close(ctx) // unusable; the server rolls back by itself
		}
	}
	return err
}
