package rights

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// Right is the right of a role to use a schema, by grants to the role itself.
type Right struct {
	Schema string
	Role   string
	Writes bool
	Owner  string // of the schema, if the role can act as it
}

// Rights are those of roles other than the owners.
type Rights []Right

// Read returns the roles that may use schemas whose names match a pattern, and the tables that are created there later.
// These default privileges distinguish a grant on shards from a grant on one table. The helper schema has none.
func Read(ctx context.Context, conn *pgx.Conn, pattern string) (Rights, error) {
	const query = `
		SELECT n.nspname::text, pg_get_userbyid(a.grantee)::text, coalesce(d.writes, false),
			CASE WHEN pg_has_role(a.grantee, n.nspowner, 'MEMBER') THEN n.nspowner::regrole::text ELSE '' END
		FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) a
		LEFT JOIN (
			SELECT d.defaclnamespace, a.grantee, bool_or(a.privilege_type = 'INSERT') FROM pg_default_acl d, aclexplode(d.defaclacl) a
			WHERE d.defaclobjtype = 'r' GROUP BY 1, 2
		) d (namespace, grantee, writes) ON d.namespace = n.oid AND d.grantee = a.grantee
		WHERE a.privilege_type = 'USAGE' AND a.grantee NOT IN (0, n.nspowner)
			AND (n.nspname ~ $1 AND d.grantee IS NOT NULL OR n.nspname = $2)`
	rows, _ := conn.Query(ctx, query, pattern, mapsql.Helper) // rows has the error
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Right])
}

// CheckRoles returns an error if a host does not have the role of a grant.
func CheckRoles(ctx context.Context, conn *pgx.Conn, grants []sql.Grant) error {
	var names []string
	for _, g := range grants {
		names = append(names, g.Role)
	}
	const query = `
		SELECT coalesce(min(name), '') FROM unnest($1::text[]) AS wanted (name)
		WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)`
	var missing string
	if err := conn.QueryRow(ctx, query, names).Scan(&missing); err != nil || missing == "" {
		return err
	}
	return fmt.Errorf("no role %s, expected on each host for its rights on shards: CREATE ROLE %s LOGIN",
		missing, pgx.Identifier{missing}.Sanitize())
}
