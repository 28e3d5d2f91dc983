package provision

import (
	"context"
	"errors"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
	"github.com/kiloshard/kiloshard/sql"
	"github.com/kiloshard/kiloshard/sql/special"
)

// RecordKeys records the map's strategy on all hosts that have shards of its cluster and recorded another strategy.
// Call it after a change that gives keys other shards, once their rows were moved. Until then the hosts refuse new
// connections by the map. It can be repeated.
//
// The error joins a [shards.HostError] for each host where that failed; the others are done.
func RecordKeys(ctx context.Context, m *shards.Map) error {
	return hosts.Each(m.Hosts(), func(i int) error { return recordKeys(ctx, m, m.Hosts()[i]) })
}

func recordKeys(ctx context.Context, m *shards.Map, host shards.Host) error {
	conn, err := session.Open(ctx, host)
	var identity *connect.IdentityError
	switch {
	case err == nil:
		return conn.Close(ctx) // it records this strategy, none, or one that keeps the shards of all keys
	case !errors.As(err, &identity):
		return err
	case identity.Field != "strategy":
		return nil // no shards of this cluster
	}
	if conn, err = session.OpenAnyCluster(ctx, host); err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return session.Run(ctx, conn, special.Refuse("kiloshard.settings")+"\n"+sql.Keys(m.Config().Cluster, mapsql.Keys(m)))
}
