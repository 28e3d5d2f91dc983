package checks

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// call is a function that Postgres calls for each row written, with the rights of the role that writes.
type call struct {
	Caller, Function, Owner string
	Indexed                 bool // by an index of a logged table, which is made after the rows are copied, unless the move is offline
}

// callsQuery returns these functions, by the dependencies that Postgres records for constraints and domains, generated columns,
// indexes, ranges and partition keys. SECURITY DEFINER functions run with their owner's rights, and only superusers create functions in C.
const callsQuery = `
WITH RECURSIVE used (type) AS ( -- by columns, and by those types in turn
  SELECT DISTINCT a.atttypid FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
  UNION
  SELECT inside.type FROM used u JOIN pg_type t ON t.oid = u.type CROSS JOIN LATERAL (
    SELECT unnest(ARRAY[t.typbasetype, t.typelem])
    UNION ALL SELECT unnest(ARRAY[r.rngtypid, r.rngsubtype]) FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
    UNION ALL SELECT f.atttypid FROM pg_attribute f WHERE f.attrelid = t.typrelid AND f.attnum > 0 AND NOT f.attisdropped
  ) inside (type)
), writing (classid, objid) AS (
  SELECT 'pg_constraint'::regclass, con.oid FROM pg_constraint con LEFT JOIN pg_class c ON c.oid = con.conrelid
  WHERE c.relnamespace = to_regnamespace($1) OR con.contypid IN (SELECT type FROM used)
  UNION ALL
  SELECT 'pg_attrdef'::regclass, f.oid FROM pg_attrdef f JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum JOIN pg_class c ON c.oid = f.adrelid
  WHERE c.relnamespace = to_regnamespace($1) AND a.attgenerated <> ''
  UNION ALL
  SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('i', 'I', 'p')
  UNION ALL
  SELECT 'pg_type'::regclass, type FROM used
), called (classid, objid, function) AS (
  SELECT w.classid, w.objid, d.refobjid FROM writing w JOIN pg_depend d USING (classid, objid) WHERE d.refclassid = 'pg_proc'::regclass
  UNION
  SELECT w.classid, w.objid, o.oprcode FROM writing w JOIN pg_depend d USING (classid, objid) JOIN pg_operator o ON o.oid = d.refobjid
  WHERE d.refclassid = 'pg_operator'::regclass
)
SELECT DISTINCT pg_describe_object(c.classid, c.objid, 0), c.function::regprocedure::text, pg_get_userbyid(p.proowner)::text,
  EXISTS (SELECT FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid WHERE c.classid = 'pg_class'::regclass AND i.indexrelid = c.objid AND t.relpersistence = 'p')
FROM called c JOIN pg_proc p ON p.oid = c.function JOIN pg_language l ON l.oid = p.prolang
WHERE NOT p.prosecdef AND l.lanname NOT IN ('internal', 'c') ORDER BY 1, 2`

func readCalls(ctx context.Context, conn *pgx.Conn, schema string) ([]call, error) {
	rows, err := conn.Query(ctx, callsQuery, schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[call])
}

// weakerQuery returns the roles among some that could do more with the rights of the current role.
const weakerQuery = `
SELECT rolname::text FROM pg_roles WHERE rolname = ANY ($1) AND NOT rolsuper AND NOT pg_has_role(oid, (SELECT oid FROM pg_roles WHERE rolname = current_user), 'MEMBER')`

// lends finds functions of weaker roles that would run with the mover's rights on a host that takes rows. The mover copies rows with its
// own rights. Postgres builds indexes with those of the tables' owners, and from 16 on applies changes with them.
func (s *Shard) lends(ctx context.Context, conn *pgx.Conn, f *Found, copied, online bool) error {
	if len(s.calls) == 0 {
		return nil
	}
	var user string
	var modern bool
	if err := conn.QueryRow(ctx, `SELECT current_user::text, current_setting('server_version_num')::int >= 160000`).Scan(&user, &modern); err != nil {
		return err
	}
	calls := slices.DeleteFunc(slices.Clone(s.calls), func(c call) bool {
		return modern && online && (!copied || c.Indexed)
	})
	owners := make([]string, len(calls))
	for i, c := range calls {
		owners[i] = c.Owner
	}
	weaker, err := session.Texts(ctx, conn, weakerQuery, owners)
	for _, c := range calls {
		if slices.Contains(weaker, c.Owner) {
			f.problem("%s calls %s for each row, which belongs to role %s and would run with the rights of role %s: expected it to be SECURITY DEFINER, or to belong to %[4]s or a superuser",
				c.Caller, c.Function, pgx.Identifier{c.Owner}.Sanitize(), pgx.Identifier{user}.Sanitize())
		}
	}
	return err
}
