package provision

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// open opens a session whose unqualified names mean Postgres's own and nobody else's.
func open(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return openAt(ctx, host, func(*pgx.ConnConfig) {})
}

// openAt is [open] for a connection that adjust has go to one of the host's addresses.
func openAt(ctx context.Context, host shards.Host, adjust func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	return connect.Open(ctx, host, func(cfg *pgx.ConnConfig) {
		adjust(cfg)
		cfg.RuntimeParams["application_name"] = "kiloshard"
		cfg.RuntimeParams["search_path"] = "pg_catalog, pg_temp"
		cfg.RuntimeParams["client_min_messages"] = "warning"
		// The catalogs have grown by thousands of rows that no ANALYZE has seen, so that Postgres expects
		// few of them and would join them row by row.
		cfg.RuntimeParams["enable_nestloop"] = "off"
		cfg.RuntimeParams["jit"] = "off"
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

// execScript runs several statements in one transaction and one round trip.
func execScript(ctx context.Context, conn *pgx.Conn, script string) error {
	_, err := conn.PgConn().Exec(ctx, "BEGIN; SET LOCAL check_function_bodies = off;\n"+script+"\nCOMMIT;").ReadAll()
	if err != nil && !conn.IsClosed() {
		_, rollbackErr := conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll()
		if rollbackErr != nil {
			_ = conn.Close(ctx) // unusable; the server rolls back by itself
		}
	}
	return err
}
