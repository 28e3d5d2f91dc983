package provision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// right is what grants to a role itself let it do in one schema.
type right struct {
	Schema string
	Role   string
	Writes bool
	Owner  string // of the schema, if the role can act as it
}

// takeRights reads which roles other than the owner may use the schemas that look like shards, and the tables created there
// later. Those default privileges tell a grant on shards from a grant on a single table. The helper schema has none.
func (inv *inventory) takeRights(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT n.nspname::text, pg_get_userbyid(a.grantee)::text, coalesce(d.writes, false),
			CASE WHEN pg_has_role(a.grantee, n.nspowner, 'MEMBER') THEN n.nspowner::regrole::text ELSE '' END
		FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) a
		LEFT JOIN (
			SELECT d.defaclnamespace, a.grantee, bool_or(a.privilege_type = 'INSERT') FROM pg_default_acl d, aclexplode(d.defaclacl) a
			WHERE d.defaclobjtype = 'r' GROUP BY 1, 2
		) d (namespace, grantee, writes) ON d.namespace = n.oid AND d.grantee = a.grantee
		WHERE a.privilege_type = 'USAGE' AND a.grantee NOT IN (0, n.nspowner) AND (n.nspname ~ $1 AND d.grantee IS NOT NULL OR n.nspname = $2)`
	rows, err := conn.Query(ctx, query, pattern, helper)
	if err != nil {
		return err
	}
	inv.rights, err = pgx.CollectRows(rows, pgx.RowToStructByPos[right])
	return err
}

// grantsOf returns the roles that have rights in more than half of the map's existing shards. New shards get these rights,
// and the other shards should have them. A role may write if it may write in more than half of those.
func grantsOf(m *shards.Map, inventories []*inventory) []sql.Grant {
	type count struct{ all, writes int }
	counts := map[string]*count{}
	there := 0
	for i, inv := range inventories {
		at := func(schema string) bool {
			n, ok := m.NumberOf(schema)
			return ok && m.Has(n) && m.HostIndex(n) == i
		}
		for schema := range inv.found {
			if at(schema) {
				there++
			}
		}
		for _, r := range inv.rights {
			if !at(r.Schema) {
				continue
			}
			c := counts[r.Role]
			if c == nil {
				c = &count{}
				counts[r.Role] = c
			}
			if c.all++; r.Writes {
				c.writes++
			}
		}
	}
	var grants []sql.Grant
	for role, c := range counts {
		if 2*c.all > there {
			grants = append(grants, sql.Grant{Role: role, ReadOnly: 2*c.writes <= c.all})
		}
	}
	slices.SortFunc(grants, func(a, b sql.Grant) int { return cmp.Compare(a.Role, b.Role) })
	return grants
}

// may reports whether a role has the rights of a grant in a schema. In the helper schema there is nothing to write.
func (inv *inventory) may(g sql.Grant, schema string) bool {
	return slices.ContainsFunc(inv.rights, func(r right) bool {
		return r.Schema == schema && r.Role == g.Role && (r.Writes || g.ReadOnly || schema == helper)
	})
}

// helperGrants returns the script that grants the helper schema to the roles that use the host's shards.
func (w *work) helperGrants(inv *inventory, changed bool) string {
	var b strings.Builder
	for _, g := range w.grants {
		if changed || !inv.may(g, helper) {
			b.WriteString(g.Helper())
		}
	}
	return b.String()
}

// rights compares the roles' rights in one schema with their rights on most shards.
func (v *verification) rights(inv *inventory, schema string) {
	for _, g := range v.grants {
		if !inv.may(g, schema) {
			v.differ(KindRights, inv, schema, "role "+g.Role+" has fewer rights here, or none", fmt.Sprintf("its rights on most shards; %s grants them", grantCommand(g)))
		}
	}
}

// owners reports roles of services that can act as the owner: superusers and its members.
func (v *verification) owners(inv *inventory) {
	for _, r := range inv.rights {
		if r.Schema == helper && r.Owner != "" {
			v.differ(KindForeign, inv, helper, fmt.Sprintf("role %s, which has rights on shards, can act as their owner %s, and so repeat IDs", r.Role, r.Owner),
				"a role that is no superuser and no member of "+r.Owner)
		}
	}
}

// grantCommand returns the command that gives a role its rights.
func grantCommand(g sql.Grant) string {
	if g.ReadOnly {
		return "kiloshard grant " + g.Role + " --read-only"
	}
	return "kiloshard grant " + g.Role
}

// checkRoles returns a [shards.HostError] for each host that does not have one of the roles.
func (s *sessions) checkRoles(ctx context.Context, grants []sql.Grant) error {
	var names []string
	for _, g := range grants {
		names = append(names, g.Role)
	}
	const query = `SELECT coalesce(min(name), '') FROM unnest($1::text[]) AS wanted (name) WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)`
	return s.each(func(_ int, conn *pgx.Conn) error {
		var missing string
		if err := conn.QueryRow(ctx, query, names).Scan(&missing); err != nil || missing == "" {
			return err
		}
		return fmt.Errorf("no role %s, expected on each host for its rights on shards: CREATE ROLE %s LOGIN", missing, pgx.Identifier{missing}.Sanitize())
	})
}
