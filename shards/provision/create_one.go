package provision

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/provision/internal/install"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// CreateOne creates one shard on its host, with missing objects of the host's helper schema and missing extensions of
// the map. It connects to no other host. A move uses it, with the map that follows the move. It waits up to wait for
// another Create or Upgrade on the host; then it returns [ErrBusy]. The errors are [shards.HostError]. Further statements run in the transaction
// that creates the shard.
func CreateOne(ctx context.Context, m *shards.Map, n shards.Number, wait time.Duration, further string) error {
	return withHostOf(ctx, m, n, wait, func(conn *pgx.Conn, w *inventory.Wanted, h *inventory.Host) error {
		return install.One(ctx, conn, w, h, n, further)
	})
}

// TryOne creates one shard as [CreateOne] does, in place of a schema of its name, runs further statements, and rolls
// all of it back.
func TryOne(ctx context.Context, m *shards.Map, n shards.Number, wait time.Duration, further string) error {
	return withHostOf(ctx, m, n, wait, func(conn *pgx.Conn, w *inventory.Wanted, h *inventory.Host) error {
		return install.RehearseOne(ctx, conn, w, h, n, further)
	})
}

// withHostOf calls fn with the host of a shard, while it holds the host's lock.
func withHostOf(
	ctx context.Context, m *shards.Map, n shards.Number, wait time.Duration,
	fn func(*pgx.Conn, *inventory.Wanted, *inventory.Host) error,
) error {
	s, err := hosts.Connect(ctx, []shards.Host{m.Host(n)}, session.Open)
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	if err := s.Lock(ctx, wait); err != nil {
		return err
	}
	w := inventory.For(m)
	return s.Each(func(_ int, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SET enable_nestloop = on"); err != nil { // indexes find the objects of one shard
			return err
		}
		h, err := w.Read(ctx, conn, m.Host(n), "^"+m.Schema(n)+"$", false)
		if err != nil {
			return err
		}
		if err := checkTrust([]*inventory.Host{h}); err != nil {
			return err
		}
		return fn(conn, w, h)
	})
}
