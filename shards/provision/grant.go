package provision

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// GrantConfig says what [Grant] grants, and how it works.
type GrantConfig struct {
	CreateConfig

	Role     string
	ReadOnly bool // SELECT only
	Revoke   bool // revoke instead
}

// GrantReport says what [Grant] did, or would do.
type GrantReport struct {
	Done    shards.Set `json:"done"`    // shards that it changed
	Missing shards.Set `json:"missing"` // shards that do not exist; [Create] creates them, with the role's rights on most of the others
}

// Grant gives a role the rights of a service on every existing shard, and on the helper schemas: to use them, to make IDs,
// and to read and write rows, or with ReadOnly only to read them. The current role's default privileges give it the same
// rights on tables that the current role creates in a shard later. [Create] gives new shards the rights that roles have on
// more than half of the others; grants are stored nowhere else. A role that had more rights keeps them. Only the owner may
// change the version of a shard. Revoke revokes all rights of the role on these schemas.
//
// Locks, errors and the end of ctx are as in [Create]; Grant can be repeated. If a host does not have the role, Grant
// returns a [shards.HostError] and changes nothing, unless it revokes. A dry run takes no lock and changes nothing: Done are
// the shards that it would change.
func Grant(ctx context.Context, cfg GrantConfig) (GrantReport, error) {
	cfg.CreateConfig = cfg.withDefaults()
	s, w, err := cfg.begin(ctx, purpose{locks: !cfg.DryRun})
	if err != nil {
		return GrantReport{}, err
	}
	defer s.close(ctx)
	g := sql.Grant{Role: cfg.Role, ReadOnly: cfg.ReadOnly}
	if !cfg.Revoke {
		if err := s.checkRoles(ctx, []sql.Grant{g}); err != nil {
			return GrantReport{}, err
		}
	}
	var there, missing []shards.Number
	for n := range cfg.Map.All().All() {
		inv, schema := w.inventories[cfg.Map.HostIndex(n)], cfg.Map.Schema(n)
		_, found := inv.found[schema]
		switch {
		case !found:
			missing = append(missing, n)
		case cfg.DryRun && inv.may(g, schema) != cfg.Revoke:
		default:
			there = append(there, n)
		}
	}
	report := GrantReport{Missing: shards.SetOf(missing...)}
	if cfg.DryRun {
		report.Done = shards.SetOf(there...)
		return report, nil
	}
	helperScript, script := g.Helper(), g.Shards
	if cfg.Revoke {
		helperScript, script = g.RevokeHelper(), g.RevokeShards
	}
	if err := s.each(func(i int, conn *pgx.Conn) error {
		if w.inventories[i].settings == nil {
			return nil // nothing is installed
		}
		return retryLocks(ctx, func() error { return execScript(ctx, conn, helperScript) })
	}); err != nil {
		return report, err
	}
	report.Done, err = w.each(ctx, cfg.CreateConfig, there, func(ctx context.Context, conn *pgx.Conn, batch []shards.Number) error {
		return retryLocks(ctx, func() error { return execScript(ctx, conn, script(cfg.Map.Schemas(batch))) })
	})
	return report, err
}
