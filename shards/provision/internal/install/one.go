package install

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// One creates one shard on its host, with missing objects of the helper schema and missing extensions. Further statements run in the transaction that
// creates the shard.
func One(ctx context.Context, conn *pgx.Conn, w *inventory.Wanted, h *inventory.Host, n shards.Number, further string) error {
	p := forOne(w, h, n)
	if script, _ := p.helperScript(h); script != "" {
		if err := session.Run(ctx, conn, script); err != nil {
			return err
		}
	}
	if err := h.Extensions.Check(ctx, conn, w.Map); err != nil {
		return err
	}
	if err := h.Extensions.Create(ctx, conn, w.Map); err != nil {
		return err
	}
	return p.create(ctx, conn, p.shardScript([]shards.Number{n})+further)
}

// RehearseOne creates one shard as [One] does, in place of a schema of its name, runs further statements, and rolls all
// of it back.
func RehearseOne(ctx context.Context, conn *pgx.Conn, w *inventory.Wanted, h *inventory.Host, n shards.Number, further string) error {
	schema := w.Map.Schema(n)
	p := forOne(w, h, n)
	helper, _ := p.helperScript(h)
	delete(h.Shards, schema)
	script := helper + h.Extensions.Script(w.Map) + "DROP SCHEMA IF EXISTS " + schema + " CASCADE;\n" + p.shardScript([]shards.Number{n})
	return session.Rehearse(ctx, conn, script+further)
}

// forOne returns a plan that knows only the host of one shard.
func forOne(w *inventory.Wanted, h *inventory.Host, n shards.Number) *Plan {
	p := &Plan{wanted: w, hosts: make([]*inventory.Host, len(w.Map.Hosts())), options: Options{Missing: true}}
	p.hosts[w.Map.HostIndex(n)] = h
	return p
}
