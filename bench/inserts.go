package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

// Bigserial is a table's own sequence. All other keys are compared with it.
const Bigserial = "bigserial"

// insertSteps is the number of steps in which a table is filled.
const insertSteps = 20

// InsertFigure is the result of filling a table with one kind of primary key.
type InsertFigure struct {
	Key         string      `json:"key"`
	Rows        int         `json:"rows"`
	PerSecond   float64     `json:"rows_per_second"`
	VsBigserial float64     `json:"ratio_to_bigserial"` // of time: above 1 is slower
	IndexBytes  int64       `json:"index_bytes"`
	TableBytes  int64       `json:"table_bytes"`
	WALBytes    float64     `json:"wal_bytes_per_row"`
	Growth      []GrowthRow `json:"growth"` // step by step
}

// GrowthRow is one step of filling a table.
type GrowthRow struct {
	Rows      int     `json:"rows"` // in the table when the step began
	PerSecond float64 `json:"rows_per_second"`
}

// insertKeys are the tables to fill: the type of the key and its default.
var insertKeys = []struct{ name, key string }{
	{Bigserial, "bigserial"},
	{Published, "bigint DEFAULT bench.published()"},
	{Ours, "bigint DEFAULT shard_00005.next_id()"},
	{Interleaved, "bigint DEFAULT shard_00005.next_order_id()"},
	{Central, "bigint DEFAULT kiloshard.next_message_id()"},
	{UUIDv4, "uuid DEFAULT shard_00005.next_session_id()"},
	{UUIDv7, "uuid DEFAULT shard_00005.next_event_id()"},
}

// fillTables fills a table of photos for each kind of key with INSERT … SELECT of many rows, in turns, step by step.
func fillTables(ctx context.Context, host shards.Host, cfg IDsConfig) ([]InsertFigure, error) {
	conns, err := server.Open(ctx, host, 1)
	if err != nil {
		return nil, err
	}
	defer server.Close(conns)
	conn := conns[0]
	figures := make([]InsertFigure, len(insertKeys))
	seconds := make([][]float64, len(insertKeys)) // by key and step
	for i, k := range insertKeys {
		figures[i].Key = k.name
		if _, err := conn.Exec(ctx, fmt.Sprintf("CREATE TABLE bench.t%d (id %s PRIMARY KEY, user_id bigint NOT NULL, title text NOT NULL)", i, k.key)); err != nil {
			return nil, err
		}
	}
	step := max(1, cfg.Rows/insertSteps)
	for s := range insertSteps {
		cfg.Progress(fmt.Sprintf("tables of %d rows", s*step))
		for k := range insertKeys {
			i := (k + s) % len(insertKeys)
			if err := grow(ctx, conn, i, step, &figures[i]); err != nil {
				return nil, fmt.Errorf("table keyed by %s: %w", insertKeys[i].name, err)
			}
			seconds[i] = append(seconds[i], float64(step)/figures[i].Growth[s].PerSecond)
		}
	}
	for i := range figures {
		f := &figures[i]
		total := 0.0
		for _, s := range seconds[i] {
			total += s
		}
		f.PerSecond = float64(f.Rows) / total
		f.VsBigserial = stats.MedianRatio(seconds[i], seconds[0])
		f.WALBytes /= float64(f.Rows)
		query := fmt.Sprintf("SELECT pg_relation_size('bench.t%d_pkey'), pg_relation_size('bench.t%d')", i, i)
		if err := conn.QueryRow(ctx, query).Scan(&f.IndexBytes, &f.TableBytes); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// grow adds rows to a table, and the WAL that they take to WALBytes.
func grow(ctx context.Context, conn *pgx.Conn, table, rows int, f *InsertFigure) error {
	before, err := walPosition(ctx, conn)
	if err != nil {
		return err
	}
	start := time.Now()
	_, err = conn.Exec(ctx, fmt.Sprintf("INSERT INTO bench.t%d (user_id, title) SELECT g, 'photo ' || g FROM generate_series(1, %d) AS g", table, rows))
	if err != nil {
		return err
	}
	took := time.Since(start)
	after, err := walPosition(ctx, conn)
	f.WALBytes += float64(after - before)
	f.Growth = append(f.Growth, GrowthRow{Rows: f.Rows, PerSecond: float64(rows) / took.Seconds()})
	f.Rows += rows
	return err
}
