package routes

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// measureDecision measures how long a router takes to find a shard. It needs no server.
func measureDecision(ctx context.Context, b *bench) error {
	for _, size := range []struct{ shards, hosts int }{{2048, 2}, {8192, 64}} {
		hosts := make([]shards.Host, size.hosts)
		for i := range hosts {
			hosts[i] = shards.Host{Name: fmt.Sprintf("pg-%02d", i), DSN: "postgres://bench@127.0.0.1:1/bench"}
		}
		m, err := mapOf(size.shards, hosts)
		if err != nil {
			return err
		}
		if err := b.decide(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) decide(ctx context.Context, m *shards.Map) error {
	r, err := router.New(ctx, router.Config{Map: m})
	if err != nil {
		return err
	}
	defer r.Close()
	ids := make([]shards.ID, 1024)
	for i := range ids {
		ids[i], err = server.Layout.Compose(shards.Parts{Milliseconds: 1e9, Shard: shards.Number(i * 7 % m.Len()), Sequence: int64(i)})
		if err != nil {
			return err
		}
	}
	n := len(ids) * max(8, int(2000*min(1, b.cfg.Turn.Seconds())))
	var byKey, byID [2][]float64 // nanoseconds and allocations, by round
	for range b.cfg.Rounds {
		for _, way := range []struct {
			taken *[2][]float64
			find  func(i int) (router.Shard, error)
		}{
			{&byKey, func(i int) (router.Shard, error) { return forKey(ctx, r, int64(i)*1_000_003) }},
			{&byID, func(i int) (router.Shard, error) { return forID(ctx, r, ids[i%len(ids)]) }},
		} {
			nanoseconds, allocations, err := decisions(n, way.find)
			if err != nil {
				return err
			}
			way.taken[0], way.taken[1] = append(way.taken[0], nanoseconds), append(way.taken[1], allocations)
		}
	}
	size := fmt.Sprintf("%d shards on %d hosts", m.Len(), len(m.Hosts()))
	b.add("by key, "+size, 1, "ns", byKey[0], nil)
	b.add("by key, "+size, 1, "allocations", byKey[1], nil)
	b.add("by ID, "+size, 1, "ns", byID[0], nil)
	b.add("by ID, "+size, 1, "allocations", byID[1], nil)
	return nil
}

// decisions returns nanoseconds and allocations per call, for n calls. Allocations by other goroutines are negligible
// among so many calls.
func decisions(n int, find func(i int) (router.Shard, error)) (nanoseconds, allocations float64, err error) {
	var before, after runtime.MemStats
	sum := 0
	runtime.ReadMemStats(&before)
	start := time.Now()
	for i := range n {
		shard, err := find(i)
		if err != nil {
			return 0, 0, err
		}
		sum += int(shard.Number()) // so that the call is not optimised away
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if sum == 0 {
		return 0, 0, fmt.Errorf("%d calls found nothing but shard 0", n)
	}
	return float64(took) / float64(n), float64((after.Mallocs - before.Mallocs) / uint64(n)), nil
}
