package move

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Status returns all moves that the ledgers of a map's hosts know, the newest last. It asks all hosts at once; if one does
// not answer, the others' moves come with the error.
func Status(ctx context.Context, m *shards.Map) ([]ledger.Move, error) {
	var mu sync.Mutex
	var all []ledger.Move
	err := hosts.Each(ctx, m, func(host shards.Host, conn *pgx.Conn) error {
		found, err := ledger.Read(ctx, conn, m, ledger.SourceSide)
		if err != nil {
			return err
		}
		found, err = ledger.OfSource(found, m, host.Name)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found...)
		return err
	})
	slices.SortStableFunc(all, func(a, b ledger.Move) int { return a.Began.Compare(b.Began) })
	return all, err
}

// Sizes returns how large the shards of a map are, in bytes on the hosts' disks, with their indexes and TOAST tables.
func Sizes(ctx context.Context, m *shards.Map) (map[shards.Number]int64, error) {
	const query = `
		SELECT n.nspname::text, coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm') AND n.nspname = ANY ($1) GROUP BY 1`
	var mu sync.Mutex
	sizes := map[shards.Number]int64{}
	err := hosts.Each(ctx, m, func(host shards.Host, conn *pgx.Conn) error {
		found, err := ofShards(ctx, m, host, conn, query)
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(sizes, found)
		return err
	})
	return sizes, err
}

// Writes returns how many rows a second are written to each shard of a map: inserted, updated or deleted. It reads the statistics of all
// hosts, waits, and reads them once more, so it takes the given time. A single reading would not do: the counters of a shard that has moved
// begin at 0 on its new host, and hosts differ in when theirs were last reset. A transaction counts when it ends, as a whole, and up to a
// second later. When ctx ends, Writes returns the error of ctx at once.
func Writes(ctx context.Context, m *shards.Map, over time.Duration) (map[shards.Number]float64, error) {
	const query = `
		SELECT n.nspname::text, sum(pg_stat_get_tuples_inserted(c.oid) + pg_stat_get_tuples_updated(c.oid) + pg_stat_get_tuples_deleted(c.oid))::bigint
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = ANY ($1) GROUP BY 1`
	var mu sync.Mutex
	rates := map[shards.Number]float64{}
	err := hosts.Each(ctx, m, func(host shards.Host, conn *pgx.Conn) error {
		before, err := ofShards(ctx, m, host, conn, query)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := wait.Sleep(ctx, over); err != nil {
			return err
		}
		after, err := ofShards(ctx, m, host, conn, query)
		if err != nil {
			return err
		}
		seconds := time.Since(began).Seconds()
		mu.Lock()
		defer mu.Unlock()
		for n, rows := range after {
			rates[n] = float64(max(rows-before[n], 0)) / seconds // fewer than before when they were reset, or a table was dropped
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return rates, err
}

// ofShards returns a figure of each shard that the map has on a host. The query has a row for each of the schemas that are its parameter.
// It asks for no others: a shard that arrives is locked while its keys are made.
func ofShards(ctx context.Context, m *shards.Map, host shards.Host, conn *pgx.Conn, query string) (map[shards.Number]int64, error) {
	rows, err := conn.Query(ctx, query, m.Schemas(m.NumbersOn(host.Name)))
	if err != nil {
		return nil, err
	}
	figures := map[shards.Number]int64{}
	var schema string
	var figure int64
	_, err = pgx.ForEachRow(rows, []any{&schema, &figure}, func() error {
		if n, ok := m.NumberOf(schema); ok {
			figures[n] = figure
		}
		return nil
	})
	return figures, err
}
