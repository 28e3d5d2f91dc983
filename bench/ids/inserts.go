package ids

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

// insertSteps is the number of steps in which a table is filled.
const insertSteps = 20

// insertKeys are the tables to fill: the type of the key and its default.
var insertKeys = []struct{ name, key string }{
	{"bigserial", "bigserial"}, // with which all others are compared
	{published, "bigint DEFAULT bench.published()"},
	{ours, "bigint DEFAULT shard_00005.next_id()"},
	{interleaved, "bigint DEFAULT shard_00005.next_order_id()"},
	{central, "bigint DEFAULT kiloshard.next_message_id()"},
	{uuidv4, "uuid DEFAULT shard_00005.next_session_id()"},
	{uuidv7, "uuid DEFAULT shard_00005.next_event_id()"},
}

// fillTables fills a table of photos for each kind of key with INSERT … SELECT of many rows, in turns, step by step.
func fillTables(ctx context.Context, host shards.Host, cfg Config) ([]Inserts, error) {
	conn, err := server.Connect(ctx, host)
	if err != nil {
		return nil, err
	}
	defer server.Close(conn)
	tables := make([]Inserts, len(insertKeys))
	seconds := make([][]float64, len(insertKeys)) // by key and step
	for i, k := range insertKeys {
		tables[i].Key = k.name
		if _, err := conn.Exec(ctx, fmt.Sprintf("CREATE TABLE bench.t%d (id %s PRIMARY KEY, user_id bigint NOT NULL, title text NOT NULL)", i, k.key)); err != nil {
			return nil, err
		}
	}
	rows := max(1, cfg.Rows/insertSteps)
	if err := harness.Turns(insertSteps, len(insertKeys), func(step, i int) error {
		if i == step%len(insertKeys) {
			cfg.Progress(fmt.Sprintf("tables of %d rows", step*rows))
		}
		took, err := grow(ctx, conn, i, rows, &tables[i])
		if err != nil {
			return fmt.Errorf("table keyed by %s: %w", insertKeys[i].name, err)
		}
		seconds[i] = append(seconds[i], took)
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range tables {
		t := &tables[i]
		total := 0.0
		for _, s := range seconds[i] {
			total += s
		}
		t.PerSecond = float64(t.Rows) / total
		t.VsBigserial = stats.MedianRatio(seconds[i], seconds[0])
		t.WALBytes /= float64(t.Rows)
		query := fmt.Sprintf("SELECT pg_relation_size('bench.t%d_pkey'), pg_relation_size('bench.t%d')", i, i)
		if err := conn.QueryRow(ctx, query).Scan(&t.IndexBytes, &t.TableBytes); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// grow adds rows to a table, and the WAL that they take to WALBytes. It returns how many seconds that took.
func grow(ctx context.Context, conn *pgx.Conn, table, rows int, t *Inserts) (seconds float64, err error) {
	before, err := walPosition(ctx, conn)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	_, err = conn.Exec(ctx, fmt.Sprintf("INSERT INTO bench.t%d (user_id, title) SELECT g, 'photo ' || g FROM generate_series(1, %d) AS g", table, rows))
	if err != nil {
		return 0, err
	}
	seconds = time.Since(start).Seconds()
	after, err := walPosition(ctx, conn)
	t.WALBytes += float64(after - before)
	t.Growth = append(t.Growth, GrowthRow{Rows: t.Rows, PerSecond: float64(rows) / seconds})
	t.Rows += rows
	return seconds, err
}
