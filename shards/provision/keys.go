package provision

import (
	"context"
	"errors"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
	"github.com/kiloshard/kiloshard/sql/special"
)

// RecordKeys records the map's strategy on all hosts that hold shards of its cluster and have recorded another: after a change
// that moves keys, whose rows were moved. Until then the hosts refuse new connections by the map. It can be repeated.
//
// The error joins a [shards.HostError] for each host where that failed; the others are done.
func RecordKeys(ctx context.Context, m *shards.Map) error {
	return each(m.Hosts(), func(i int) error { return recordKeys(ctx, m, m.Hosts()[i]) })
}

func recordKeys(ctx context.Context, m *shards.Map, host shards.Host) error {
	conn, err := open(ctx, host)
	var identity *connect.IdentityError
	switch {
	case err == nil:
		return conn.Close(ctx) // it records this strategy, none, or one that keeps all keys where they are
	case !errors.As(err, &identity):
		return err
	case identity.Field != "strategy":
		return nil // no shards of this cluster
	}
	if conn, err = openAnyCluster(ctx, host); err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	script := special.Refuse("kiloshard.settings") + "\n" + sql.Keys(m.Config().Cluster, keysOf(m))
	return retryLocks(ctx, func() error { return execScript(ctx, conn, script) })
}
