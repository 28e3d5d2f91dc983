package directory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards"
)

// atOnce is the number of shards that one statement counts.
const atOnce = 256

// counts counts the keys of shards, in the only row of the shard's table kiloshard_usage. One statement both counts a key
// and enforces the shard's capacity.
type counts struct {
	store Store
	log   *slog.Logger
}

// take counts one more key in shard n, and returns the new count. If the shard is full, taken is false.
func (c *counts) take(ctx context.Context, n shards.Number) (keys int64, taken bool, err error) {
	const query = `update kiloshard_usage set keys = keys + 1 where keys < $1 returning keys`
	err = c.store.QueryRow(ctx, n, query, c.store.Map().Capacity(n)).Scan(&keys)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return keys, err == nil, explain(err)
}

// release counts one key less in shard n, even after ctx has ended. If it fails, the shard counts one key more than it has:
// it is full one key early, but never exceeds its capacity.
func (c *counts) release(ctx context.Context, n shards.Number) {
	const query = `update kiloshard_usage set keys = greatest(keys - 1, 0)`
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	if _, err := c.store.Exec(ctx, n, query); err != nil {
		m := c.store.Map()
		c.log.LogAttrs(ctx, slog.LevelWarn, "directory: a shard counts one key more than it has", slog.String("host", m.Host(n).Name),
			slog.Int("shard", int(n)), slog.String("schema", m.Schema(n)), slog.Any("error", err))
	}
}

// count returns the number of keys of all shards on open hosts, by shard number, and -1 for the shards of a host that did
// not answer. It returns an error if no host answered.
func (c *counts) count(ctx context.Context, m *shards.Map) ([]int64, error) {
	keys := make([]int64, m.Len())
	hosts := m.Hosts()
	errs := make([]error, len(hosts))
	open := 0
	var group errgroup.Group
	for i, host := range hosts {
		numbers := m.NumbersOn(host.Name)
		if host.Closed || len(numbers) == 0 {
			continue
		}
		open++
		group.Go(func() error {
			if errs[i] = c.countOn(ctx, m, numbers, keys); errs[i] != nil {
				for _, n := range numbers {
					keys[n] = -1
				}
				c.log.Warn("directory: cannot count the keys of a host",
					slog.String("host", host.Name), slog.Any("error", errs[i]))
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	if open > 0 && failed == open {
		return nil, errors.Join(errs...)
	}
	return keys, nil
}

// countOn stores the number of keys of the given shards, all on one host, in keys.
func (c *counts) countOn(ctx context.Context, m *shards.Map, numbers []shards.Number, keys []int64) error {
	for len(numbers) > 0 {
		some := numbers[:min(atOnce, len(numbers))]
		numbers = numbers[len(some):]
		var query strings.Builder
		for i, n := range some {
			if i > 0 {
				query.WriteString(" union all ")
			}
			fmt.Fprintf(&query, "select %d, keys from %s.kiloshard_usage", n, m.Schema(n))
		}
		// Not prepared: it would evict a more frequent statement.
		rows, err := c.store.Query(ctx, some[0], query.String(), pgx.QueryExecModeExec)
		if err != nil {
			return explain(err)
		}
		var n shards.Number
		var count int64
		if _, err := pgx.ForEachRow(rows, []any{&n, &count}, func() error {
			keys[n] = count
			return nil
		}); err != nil {
			return explain(err)
		}
	}
	return nil
}
