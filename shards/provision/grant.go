package provision

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/batch"
	"github.com/kiloshard/kiloshard/shards/provision/internal/install"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// GrantConfig configures [Grant].
type GrantConfig struct {
	CreateConfig

	Role     string
	ReadOnly bool // SELECT only
	Revoke   bool // revoke instead
}

// GrantReport is the result of [Grant].
type GrantReport struct {
	Done    shards.Set `json:"done"`    // shards that it changed
	Missing shards.Set `json:"missing"` // shards that do not exist; [Create] creates them, with the role's rights on most of the others
}

// Grant gives a role the rights of a service on every existing shard, and on the helper schemas: to use them, to make
// IDs, and to read and write rows, or with ReadOnly only to read them. The current role's default privileges give it
// the same rights on tables that the current role creates in a shard later. [Create] gives new shards the rights that
// roles have on more than half of the others; grants are stored nowhere else. A role that had more rights keeps them.
// Only the owner may change the version of a shard. Revoke revokes all rights of the role on these schemas.
//
// Locks, errors and the end of ctx are as in [Create]; Grant can be repeated. If a host does not have the role, Grant
// returns a [shards.HostError] and changes nothing, unless it revokes. A dry run takes no lock and changes nothing:
// Done are the shards that it would change.
func Grant(ctx context.Context, cfg GrantConfig) (GrantReport, error) {
	cfg.CreateConfig = cfg.withDefaults()
	op, err := cfg.begin(ctx, install.Options{})
	if err != nil {
		return GrantReport{}, err
	}
	defer op.sessions.Close(ctx)
	g := sql.Grant{Role: cfg.Role, ReadOnly: cfg.ReadOnly}
	helperScript, shardScript := g.Helper(), g.Shards
	if cfg.Revoke {
		helperScript, shardScript = g.RevokeHelper(), g.RevokeShards
	} else if err := op.checkRoles(ctx, []sql.Grant{g}); err != nil {
		return GrantReport{}, err
	}
	var existing, missing []shards.Number
	for n := range cfg.Map.All().All() {
		h, schema := op.hosts[cfg.Map.HostIndex(n)], cfg.Map.Schema(n)
		_, exists := h.Shards[schema]
		switch {
		case !exists:
			missing = append(missing, n)
		case cfg.DryRun && h.Rights.Has(g, schema) != cfg.Revoke: // it would change nothing
		default:
			existing = append(existing, n)
		}
	}
	report := GrantReport{Missing: shards.SetOf(missing...)}
	if cfg.DryRun {
		report.Done = shards.SetOf(existing...)
		return report, nil
	}
	if err := op.sessions.Each(func(i int, conn *pgx.Conn) error {
		if op.hosts[i].Helper.Settings == nil {
			return nil // nothing is installed
		}
		return session.Run(ctx, conn, helperScript)
	}); err != nil {
		return report, err
	}
	grant := func(ctx context.Context, conn *pgx.Conn, numbers []shards.Number) error {
		return session.Run(ctx, conn, shardScript(cfg.Map.Schemas(numbers)))
	}
	report.Done, err = batch.Run(ctx, cfg.Map, cfg.batches(), existing, grant)
	return report, err
}
