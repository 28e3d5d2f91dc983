package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards"
)

// settleLimit bounds what is put right after something went wrong.
const settleLimit = 5 * time.Second

// atOnce is how many shards are counted by one statement.
const atOnce = 256

// places counts the keys of shards: in the table kiloshard_usage of each, one row, so that one statement both counts a
// key and keeps the shard's capacity.
type places struct {
	router *Router
	log    *slog.Logger
}

// take counts one more key in shard n, and returns how many there are then, unless the shard is full.
func (p *places) take(ctx context.Context, n shards.Number) (keys int64, taken bool, err error) {
	const query = `update kiloshard_usage set keys = keys + 1 where keys < $1 returning keys`
	now := p.router.now.Load()
	err = now.on(n).QueryRow(ctx, query, now.shards.Capacity(n)).Scan(&keys)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return keys, err == nil, lacking(err)
}

// giveBack counts one key less in shard n. It takes its time also when ctx has ended. If it fails, the shard counts one
// key more than it has: its capacity is reached a key early, and never exceeded.
func (p *places) giveBack(ctx context.Context, n shards.Number) {
	const query = `update kiloshard_usage set keys = greatest(keys - 1, 0)`
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	s := p.router.now.Load().on(n)
	if _, err := s.Exec(ctx, query); err != nil {
		s.home.now().host.log.LogAttrs(ctx, slog.LevelWarn, "directory: a shard counts a key too many", append(s.attrs(), slog.Any("error", err))...)
	}
}

// count returns the keys of all shards on the hosts that are open, by number, and -1 for those of a host that did not
// answer. It returns an error if none did.
func (p *places) count(ctx context.Context, m *shards.Map) ([]int64, error) {
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
			if errs[i] = p.countOn(ctx, m, numbers, keys); errs[i] != nil {
				for _, n := range numbers {
					keys[n] = -1
				}
				p.log.Warn("directory: the keys of a host could not be counted",
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

// countOn puts the keys of shards on one host into keys.
func (p *places) countOn(ctx context.Context, m *shards.Map, numbers []shards.Number, keys []int64) error {
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
		// Not prepared: it would take the place of a statement that is used more often.
		rows, err := p.router.now.Load().on(some[0]).Query(ctx, query.String(), pgx.QueryExecModeExec)
		if err != nil {
			return lacking(err)
		}
		var n shards.Number
		var count int64
		if _, err := pgx.ForEachRow(rows, []any{&n, &count}, func() error {
			keys[n] = count
			return nil
		}); err != nil {
			return lacking(err)
		}
	}
	return nil
}
