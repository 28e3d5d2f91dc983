package stores

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

// roundTrip is long enough for the time of a call to show how many round trips it waits for.
const roundTrip = 10 * time.Millisecond

// measureGetMany measures GetMany over all shards, beside one batch for each host by hand, also over a slow network.
func measureGetMany(ctx context.Context, b *bench) error {
	pins, err := objects.Open(b.router, "pin", objects.Options[pin]{})
	if err != nil {
		return err
	}
	ids := make([]shards.ID, b.cfg.IDs)
	if err := all(b.cfg.Callers, len(ids), func(i int) error {
		shard, err := b.router.ForShard(shards.Number(i % b.cfg.Shards))
		if err != nil {
			return err
		}
		o, err := pins.CreateIn(ctx, shard, pin{Details: fmt.Sprint(i)})
		ids[i] = o.ID
		return err
	}); err != nil {
		return err
	}
	ours := func(ctx context.Context, _ int) error {
		all, err := pins.GetMany(ctx, ids)
		if err == nil && len(all) != len(ids) {
			err = fmt.Errorf("%d objects, expected %d", len(all), len(ids))
		}
		return err
	}
	byHand := func(ctx context.Context, _ int) error {
		all, err := b.manyByHand(ctx, ids)
		if err == nil && len(all) != len(ids) {
			err = fmt.Errorf("%d objects by hand, expected %d", len(all), len(ids))
		}
		return err
	}
	const calls = 20
	what := fmt.Sprintf("GetMany of %d objects on %d shards", b.cfg.IDs, min(b.cfg.IDs, b.cfg.Shards))
	if err := b.compare(ctx, comparison{what, calls, 1}, ours, byHand); err != nil {
		return err
	}
	for i := range b.counters {
		b.counters[i].delay.Store(int64(roundTrip))
		defer b.counters[i].delay.Store(0)
	}
	far, err := b.openRouter(ctx) // a new one, which has measured no shorter round trip
	if err != nil {
		return err
	}
	defer far.Close()
	if pins, err = objects.Open(far, "pin", objects.Options[pin]{}); err != nil {
		return err
	}
	return b.compare(ctx, comparison{fmt.Sprintf("the same, %v a round trip", roundTrip), calls, 1}, ours, byHand)
}

// manyByHand returns pins in the order of their IDs. It reads those of a host in one batch.
func (b *bench) manyByHand(ctx context.Context, ids []shards.ID) ([]pin, error) {
	of := map[shards.Number][]int64{}
	for _, id := range ids {
		p := objects.Layout.Parts(id)
		of[p.Shard] = append(of[p.Shard], p.Sequence)
	}
	batches := make([]pgx.Batch, len(b.pools))
	found := make([]map[shards.ID]pin, len(b.pools))
	for n, locals := range of {
		host := b.m.HostIndex(n)
		if found[host] == nil {
			found[host] = map[shards.ID]pin{}
		}
		read := func(rows pgx.Rows) error {
			var local int64
			var data []byte
			var at time.Time
			_, err := pgx.ForEachRow(rows, []any{&local, &data, &at}, func() error {
				id, err := objects.Layout.Compose(shards.Parts{Shard: n, Type: 1, Sequence: local})
				if err != nil {
					return err
				}
				var p pin
				err = json.Unmarshal(data, &p)
				found[host][id] = p
				return err
			})
			return err
		}
		batches[host].Queue(`select local_id, data::text, ts from `+b.m.Schema(n)+`.pins where local_id = any($1) and data->'active' is distinct from 'false'`, locals).Query(read)
	}
	err := harness.Together(len(batches), func(host int) error { return b.pools[host].SendBatch(ctx, &batches[host]).Close() })
	var all []pin
	for _, id := range ids {
		if p, ok := found[b.m.HostIndex(objects.Layout.Parts(id).Shard)][id]; ok {
			all = append(all, p)
		}
	}
	return all, err
}
