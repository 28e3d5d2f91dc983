package provision

import (
	"context"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// Presence reports the shards that a host has, regardless of the map's placement.
type Presence struct {
	Host   shards.Host
	Whole  shards.Set // complete shards
	Partly shards.Set // schemas without all objects of a shard
}

// Present looks on the given hosts, which need not be those of the map, for schemas of shards of the map. It changes
// nothing. The errors are [shards.HostError]; if a host does not answer, it returns nothing else.
func Present(ctx context.Context, m *shards.Map, on []shards.Host) ([]Presence, error) {
	s, err := hosts.Connect(ctx, on, session.Open)
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	all, err := inventory.For(m).ReadAll(ctx, s, false)
	if err != nil {
		return nil, err
	}
	found := make([]Presence, len(on))
	for i, h := range all {
		var whole, partly []shards.Number
		for schema, has := range h.Shards {
			switch n, ok := m.NumberOf(schema); {
			case !ok || !m.Has(n):
			case has.Complete:
				whole = append(whole, n)
			default:
				partly = append(partly, n)
			}
		}
		found[i] = Presence{Host: on[i], Whole: shards.SetOf(whole...), Partly: shards.SetOf(partly...)}
	}
	return found, nil
}
