package maps

import (
	"context"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// checkHomes refuses to change the host of shards by accident: it takes --moved, and the shards must be on the new host.
func checkHomes(ctx context.Context, a *cli.App, now, next *shards.Map, f changeFlags) error {
	moved := movedShards(now, next)
	if moved.Len() == 0 {
		return nil
	}
	if !f.moved {
		n := firstOf(moved)
		to := next.Host(n).Name
		if to == now.Host(n).Name {
			to += " with the dsn of another host"
		}
		return &shards.ChangeError{
			Field: "placement", From: fmt.Sprintf("shard %d on %s", n, now.Host(n).Name), To: to,
			Why: fmt.Sprintf("their rows would stay behind (shards %s); --moved says that they are on the new host already", moved),
		}
	}
	now, err := connectable(a, now)
	if err != nil {
		return err
	}
	if next, err = connectable(a, next); err != nil {
		return err
	}
	var hosts []shards.Host
	at := map[string]int{} // by DSN: index into hosts
	index := func(h shards.Host) int {
		i, ok := at[h.ConnString()]
		if !ok {
			i = len(hosts)
			at[h.ConnString()] = i
			hosts = append(hosts, h)
		}
		return i
	}
	for n := range moved.All() {
		index(next.Host(n))
		index(now.Host(n))
	}
	found, err := provision.Present(ctx, next, hosts)
	if err != nil {
		return fmt.Errorf("--moved: %w", err)
	}
	for n := range moved.All() {
		to, from := found[index(next.Host(n))], found[index(now.Host(n))]
		switch {
		case !to.Whole.Has(n):
			return cli.Usagef("--moved: shard %d: %s is not on %s, or not all of it", n, next.Schema(n), to.Host.Name)
		case from.Whole.Has(n) || from.Partly.Has(n):
			return cli.Usagef("--moved: shard %d: %s is still on %s: expected it to be renamed or dropped there, so that no client writes to it", n, next.Schema(n), from.Host.Name)
		}
	}
	return nil
}

// movedShards returns the shards that would be looked for on another host: one of another name, or one that took over
// the DSN of another, or its address. A host may have another name or another DSN, but not both.
func movedShards(now, next *shards.Map) shards.Set {
	known := map[string]bool{}
	for _, h := range now.Hosts() {
		known[h.DSN], known[h.Address()] = true, true
	}
	known[""] = false // of a DSN that tells no address
	var moved []shards.Number
	for n := range shards.Number(min(now.Len(), next.Len())) {
		if a, b := now.Host(n), next.Host(n); a.DSN != b.DSN && (a.Name != b.Name || known[b.DSN] || b.Address() != a.Address() && known[b.Address()]) {
			moved = append(moved, n)
		}
	}
	return shards.SetOf(moved...)
}

func firstOf(set shards.Set) shards.Number {
	return slices.Collect(set.All())[0]
}

// connectable returns a map with the variables of its DSNs filled in.
func connectable(a *cli.App, m *shards.Map) (*shards.Map, error) {
	text, err := m.Config().YAML()
	if err != nil {
		return nil, err
	}
	cfg, err := shards.Parse("the map", text, a.Lookup)
	if err != nil {
		return nil, err
	}
	return cfg.Map()
}
