package provision

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/provision/internal/install"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/shards/provision/internal/rights"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// operation is a Create, an Upgrade or a Grant on all hosts of a map, after its checks and before its first change.
type operation struct {
	sessions *hosts.Sessions
	hosts    []*inventory.Host
	plan     *install.Plan
}

// begin connects to all hosts of the map, takes their locks except for a dry run, reads their content, checks that the
// map may be applied, and plans the work. Without an error the caller closes the sessions.
func (cfg CreateConfig) begin(ctx context.Context, o install.Options) (_ *operation, err error) {
	open := session.Open
	if o.Missing && !cfg.DryRun {
		open = session.OpenAnyCluster // the installation takes over a host of another cluster, or refuses it if it has shards
	}
	s, err := hosts.Connect(ctx, cfg.Map.Hosts(), open)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close(ctx)
		}
	}()
	if err := s.CheckDistinct(ctx); err != nil {
		return nil, err
	}
	if !cfg.DryRun {
		if err := s.Lock(ctx, cfg.Wait); err != nil {
			return nil, err
		}
	}
	w := inventory.For(cfg.Map)
	all, err := w.ReadAll(ctx, s, o.Repair)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkTrust(all), checkProgressions(w, all), checkKeys(cfg.Map, all)); err != nil {
		return nil, err
	}
	op := &operation{sessions: s, hosts: all, plan: install.New(w, all, o)}
	if o.Missing {
		if err := op.checkRoles(ctx, op.plan.Grants); err != nil {
			return nil, err
		}
	}
	return op, nil
}

// checkRoles returns a [shards.HostError] for each host that does not have the role of a grant.
func (op *operation) checkRoles(ctx context.Context, grants []sql.Grant) error {
	return op.sessions.Each(func(_ int, conn *pgx.Conn) error { return rights.CheckRoles(ctx, conn, grants) })
}

// checkExtensions returns a [shards.HostError] for each host with an extension that differs from the map, or that
// cannot have one.
func (op *operation) checkExtensions(ctx context.Context, m *shards.Map) error {
	if len(m.Extensions()) == 0 {
		return nil
	}
	return op.sessions.Each(func(i int, conn *pgx.Conn) error { return op.hosts[i].Extensions.Check(ctx, conn, m) })
}

// checkKeys returns a [shards.HostError] for each host with shards whose keys go by another strategy.
func checkKeys(m *shards.Map, all []*inventory.Host) error {
	var errs []error
	for _, h := range all {
		s := h.Helper.Settings
		if s == nil || s.Cluster != m.Config().Cluster || !h.HasShards() {
			continue
		}
		if err := connect.CheckKeys(s.Keys, mapsql.Keys(m)); err != nil {
			errs = append(errs, &shards.HostError{Host: h.Name, Err: err})
		}
	}
	return errors.Join(errs...)
}
