package objects

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// openShards are the shards of a map that get new objects, by their hosts.
type openShards struct {
	of     *shards.Map
	hosts  []openHost
	weight int // of all hosts
}

type openHost struct {
	weight int
	shards []shards.Number
}

func openShardsOf(m *shards.Map) *openShards {
	on := make([][]shards.Number, len(m.Hosts()))
	for n := range m.All().All() {
		i := m.HostIndex(n)
		on[i] = append(on[i], n)
	}
	o := &openShards{of: m}
	for i, h := range m.Hosts() {
		if !h.Closed && len(on[i]) > 0 {
			o.hosts = append(o.hosts, openHost{h.Weight, on[i]})
			o.weight += h.Weight
		}
	}
	return o
}

// newShard returns a shard for a new object.
func (t *Type[T]) newShard(ctx context.Context) (router.Shard, error) {
	if t.in.tx != nil {
		return t.in.shard, nil
	}
	m := t.r.Map()
	if m.MakesKeys() {
		return t.r.NewShard(ctx)
	}
	o := t.open.Load()
	if o == nil || o.of != m {
		o = openShardsOf(m)
		t.open.Store(o)
	}
	if len(o.hosts) == 0 {
		return router.Shard{}, fmt.Errorf("all hosts are closed: %w", router.ErrFull)
	}
	left, host := rand.IntN(o.weight), 0
	for left >= o.hosts[host].weight {
		left -= o.hosts[host].weight
		host++
	}
	all := o.hosts[host].shards
	return t.r.ForShard(all[rand.IntN(len(all))])
}
