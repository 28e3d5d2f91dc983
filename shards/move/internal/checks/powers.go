package checks

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// power is a privilege of a role on the whole server.
type power struct{ Role, Power string }

// powersQuery returns the powers of roles that a SECURITY DEFINER function could lend to others. It omits memberships
// that show statistics or serve moves, and BYPASSRLS, which owners of tables with forced policies need on the target.
const powersQuery = `
SELECT r.rolname::text, p.power FROM pg_roles r CROSS JOIN LATERAL (
  SELECT 'SUPERUSER' WHERE r.rolsuper
  UNION ALL SELECT 'CREATEROLE' WHERE r.rolcreaterole AND NOT r.rolsuper
  UNION ALL SELECT 'REPLICATION' WHERE r.rolreplication AND NOT r.rolsuper
  UNION ALL SELECT 'a member of ' || g.rolname FROM pg_roles g WHERE NOT r.rolsuper AND g.rolname ^@ 'pg_' AND pg_has_role(r.oid, g.oid, 'MEMBER')
    AND g.rolname <> ALL ('{pg_monitor,pg_read_all_settings,pg_read_all_stats,pg_stat_scan_tables,pg_create_subscription,pg_checkpoint,pg_use_reserved_connections}')
) p (power) WHERE r.rolname = ANY ($1) ORDER BY 1, 2`

func readPowers(ctx context.Context, conn *pgx.Conn, roles []string) ([]power, error) {
	rows, err := conn.Query(ctx, powersQuery, roles)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[power])
}

// comparePowers finds owners with more powers on the target: objects go there to the role of the same name, so a SECURITY
// DEFINER function would gain them.
func (s *Shard) comparePowers(ctx context.Context, conn *pgx.Conn, f *Found) error {
	found, err := readPowers(ctx, conn, s.owners)
	if err != nil {
		return err
	}
	for _, role := range s.owners {
		if slices.Contains(s.powers, power{role, "SUPERUSER"}) {
			continue
		}
		var more []string
		for _, p := range found {
			if p.Role == role && !slices.Contains(s.powers, p) {
				more = append(more, p.Power)
			}
		}
		if len(more) > 0 {
			f.problem("role %s, which owns something of the shard, is %s, and on the source it is not: expected a role of the same rights, or another owner",
				pgx.Identifier{role}.Sanitize(), strings.Join(more, ", "))
		}
	}
	return nil
}
