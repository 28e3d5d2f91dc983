package moves

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// bare copies the shard's tables to the other host with CREATE SUBSCRIPTION alone, and returns how long that took. The other
// host must not have a schema with the shard's name. The callers continue meanwhile.
func (c *cluster) bare(ctx context.Context, home, other shards.Host) (took time.Duration, err error) {
	source, err := c.connect(ctx, home)
	if err != nil {
		return 0, err
	}
	defer func() { _ = source.Close(context.WithoutCancel(ctx)) }()
	target, err := c.connect(ctx, other)
	if err != nil {
		return 0, err
	}
	defer func() { _ = target.Close(context.WithoutCancel(ctx)) }()
	var names, tables []string
	for t := range c.tables {
		names = append(names, schema+"."+table(t))
		tables = append(tables, fmt.Sprintf("CREATE TABLE %s.%s (id bigint PRIMARY KEY, writer int NOT NULL, n int NOT NULL, note text)", schema, table(t)))
	}
	config := source.Config()
	conninfo := fmt.Sprintf("host=%s port=%d dbname=%s user=%s password=%s", config.Host, config.Port, config.Database, config.User, config.Password)
	began := time.Now()
	for _, s := range []struct {
		conn      *pgx.Conn
		statement string
	}{
		{source, "CREATE PUBLICATION bare FOR TABLE " + strings.Join(names, ", ")},
		{target, "CREATE SCHEMA " + schema},
		{target, strings.Join(tables, "; ")},
		// Create the slot first: on a single server, as in tests, CREATE SUBSCRIPTION would wait for itself.
		{source, "SELECT pg_create_logical_replication_slot('bare', 'pgoutput')"},
		{target, "CREATE SUBSCRIPTION bare CONNECTION '" + strings.ReplaceAll(conninfo, "'", "''") + "' PUBLICATION bare WITH (create_slot = false)"},
	} {
		if _, err := s.conn.Exec(ctx, s.statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return 0, err
		}
	}
	for left := 1; left > 0; time.Sleep(5 * time.Millisecond) {
		if err := target.QueryRow(ctx, `SELECT count(*) FROM pg_subscription_rel r JOIN pg_subscription s ON s.oid = r.srsubid WHERE s.subname = 'bare' AND srsubstate <> 'r'`).Scan(&left); err != nil {
			return 0, err
		}
	}
	took = time.Since(began)
	for _, s := range []struct {
		conn      *pgx.Conn
		statement string
	}{
		{target, "ALTER SUBSCRIPTION bare DISABLE"},
		{target, "ALTER SUBSCRIPTION bare SET (slot_name = NONE)"},
		{target, "DROP SUBSCRIPTION bare"},
		{source, "SELECT pg_terminate_backend(active_pid, 60000) FROM pg_replication_slots WHERE slot_name = 'bare' AND active"},
		{source, "SELECT pg_drop_replication_slot('bare')"},
		{target, "DROP SCHEMA " + schema + " CASCADE"},
		{source, "DROP PUBLICATION bare"},
	} {
		if _, err := s.conn.Exec(ctx, s.statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return 0, err
		}
	}
	return took, nil
}
