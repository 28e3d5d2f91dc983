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
	o := &openShards{of: m}
	for i, h := range m.Hosts() {
		host := openHost{weight: h.Weight}
		for n := range m.All().All() {
			if !h.Closed && m.HostIndex(n) == i {
				host.shards = append(host.shards, n)
			}
		}
		if len(host.shards) > 0 {
			o.hosts = append(o.hosts, host)
			o.weight += host.weight
		}
	}
	return o
}

// newShard returns a shard for a new object.
func (t *Type[T]) newShard(ctx context.Context) (router.Shard, error) {
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
