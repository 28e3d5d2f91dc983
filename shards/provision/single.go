package provision

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// CreateOne makes one shard on the host where m puts it, with what the host's helper schema lacks and the map's extensions, and looks at no other
// host. It is for a move, which gives it the map that follows the move. It waits for another Create or Upgrade on the host
// as long as wait lasts: [ErrBusy]. The errors are [shards.HostError].
func CreateOne(ctx context.Context, m *shards.Map, n shards.Number, wait time.Duration) error {
	return one(ctx, m, n, wait, func(w *work, conn *pgx.Conn, inv *inventory) error {
		if script, _ := w.helper(presentOf(m), inv, true); script != "" {
			if err := retryLocks(ctx, func() error { return execScript(ctx, conn, script) }); err != nil {
				return err
			}
		}
		if err := inv.checkExtensions(ctx, conn, m); err != nil {
			return err
		}
		if err := inv.makeExtensions(ctx, conn, m); err != nil {
			return err
		}
		return w.make(ctx, conn, []shards.Number{n})
	})
}

// TryOne makes one shard as [CreateOne] does, in place of what has its schema's name, runs further statements, and rolls all of it back.
func TryOne(ctx context.Context, m *shards.Map, n shards.Number, wait time.Duration, further string) error {
	return one(ctx, m, n, wait, func(w *work, conn *pgx.Conn, inv *inventory) error {
		helper, _ := w.helper(presentOf(m), inv, true)
		delete(inv.found, m.Schema(n))
		for _, e := range inv.lacking(m) {
			helper += extensionScript(e)
		}
		script := helper + "DROP SCHEMA IF EXISTS " + m.Schema(n) + " CASCADE;\n" + w.makeScript([]shards.Number{n}) + further
		return retryLocks(ctx, func() error { return endScript(ctx, conn, script, "ROLLBACK") })
	})
}

// one calls fn with the host of a shard, locked against others who create shards there.
func one(ctx context.Context, m *shards.Map, n shards.Number, wait time.Duration, fn func(*work, *pgx.Conn, *inventory) error) error {
	s, err := connectAll(ctx, []shards.Host{m.Host(n)}, open)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	if err := s.lock(ctx, wait); err != nil {
		return err
	}
	return s.each(func(_ int, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SET enable_nestloop = on"); err != nil { // indexes find the objects of one shard
			return err
		}
		inv, err := take(ctx, conn, m, m.Host(n), "^"+m.Schema(n)+"$", false)
		if err != nil {
			return err
		}
		if err := untrusted([]*inventory{inv}); err != nil {
			return err
		}
		w := &work{m: m, inventories: make([]*inventory, len(m.Hosts()))}
		w.inventories[m.HostIndex(n)] = inv
		return fn(w, conn, inv)
	})
}
