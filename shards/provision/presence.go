package provision

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Presence is which shards a host holds, regardless of the map.
type Presence struct {
	Host   shards.Host
	Whole  shards.Set // all that makes a shard is there
	Partly shards.Set // the schema is there, without some of it
}

// Present looks on the given hosts, which need not be those of the map, for schemas of shards of the map. It changes
// nothing. The errors are [shards.HostError]; when a host does not answer, nothing is returned.
func Present(ctx context.Context, m *shards.Map, hosts []shards.Host) ([]Presence, error) {
	sessions, err := connectAll(ctx, hosts, open)
	if err != nil {
		return nil, err
	}
	defer sessions.close(ctx)
	found := make([]Presence, len(hosts))
	err = sessions.each(func(i int, conn *pgx.Conn) error {
		inv, err := take(ctx, conn, m, hosts[i], schemaPattern(m), false)
		if err != nil {
			return err
		}
		var whole, partly []shards.Number
		for schema, has := range inv.found {
			switch n, ok := m.NumberOf(schema); {
			case !ok || !m.Has(n):
			case has.whole:
				whole = append(whole, n)
			default:
				partly = append(partly, n)
			}
		}
		found[i] = Presence{Host: hosts[i], Whole: shards.SetOf(whole...), Partly: shards.SetOf(partly...)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}
