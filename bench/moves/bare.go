package moves

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// bare copies the shard's tables to the target with CREATE SUBSCRIPTION alone, and returns how long that took. The target
// must not have a schema with the shard's name. Callers keep writing during the copy.
func (c *cluster) bare(ctx context.Context, source, target shards.Host) (took time.Duration, err error) {
	from, err := pgx.Connect(ctx, source.ConnString())
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close(context.WithoutCancel(ctx)) }()
	to, err := pgx.Connect(ctx, target.ConnString())
	if err != nil {
		return 0, err
	}
	defer func() { _ = to.Close(context.WithoutCancel(ctx)) }()
	var names, tables []string
	for t := range c.tables {
		names = append(names, schema+"."+table(t))
		tables = append(tables, fmt.Sprintf("CREATE TABLE %s.%s (id bigint PRIMARY KEY, writer int NOT NULL, n int NOT NULL, note text)", schema, table(t)))
	}
	config := from.Config()
	conninfo := fmt.Sprintf("host=%s port=%d dbname=%s user=%s password=%s", config.Host, config.Port, config.Database, config.User, config.Password)
	began := time.Now()
	if err := run(ctx, []step{
		{from, "CREATE PUBLICATION bare FOR TABLE " + strings.Join(names, ", ")},
		{to, "CREATE SCHEMA " + schema},
		{to, strings.Join(tables, "; ")},
		// Create the slot first: on a single server, as in tests, CREATE SUBSCRIPTION would wait for itself.
		{from, "SELECT pg_create_logical_replication_slot('bare', 'pgoutput')"},
		{to, "CREATE SUBSCRIPTION bare CONNECTION '" + strings.ReplaceAll(conninfo, "'", "''") + "' PUBLICATION bare WITH (create_slot = false)"},
	}); err != nil {
		return 0, err
	}
	const unfinished = `SELECT count(*) FROM pg_subscription_rel r JOIN pg_subscription s ON s.oid = r.srsubid WHERE s.subname = 'bare' AND srsubstate <> 'r'`
	for left := 1; left > 0; time.Sleep(5 * time.Millisecond) {
		if err := to.QueryRow(ctx, unfinished).Scan(&left); err != nil {
			return 0, err
		}
	}
	took = time.Since(began)
	return took, run(ctx, []step{
		{to, "ALTER SUBSCRIPTION bare DISABLE"},
		{to, "ALTER SUBSCRIPTION bare SET (slot_name = NONE)"},
		{to, "DROP SUBSCRIPTION bare"},
		{from, "SELECT pg_terminate_backend(active_pid, 60000) FROM pg_replication_slots WHERE slot_name = 'bare' AND active"},
		{from, "SELECT pg_drop_replication_slot('bare')"},
		{to, "DROP SCHEMA " + schema + " CASCADE"},
		{from, "DROP PUBLICATION bare"},
	})
}

// step is a statement on a connection.
type step struct {
	on        *pgx.Conn
	statement string
}

func run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if _, err := s.on.Exec(ctx, s.statement); err != nil {
			return err
		}
	}
	return nil
}
