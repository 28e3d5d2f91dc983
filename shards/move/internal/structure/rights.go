package structure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/sql"
)

// things are a schema ($1) and what is in it, under the names that they have once it is called $2 and the shard is shown: see [fence.Hide].
// changed are the roles whose privileges on a thing are not those that its kind gives: grants by the database's default privileges count as changed,
// since another database has others.
const things = `
WITH things (kind, name, oid, owner, acl, initial) AS (
  SELECT 'SCHEMA', quote_ident($2::text), oid, nspowner, nspacl, acldefault('n', nspowner) FROM pg_namespace WHERE nspname = $1
  UNION ALL
  SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, format('%I.%I', $2, CASE c.relname WHEN '` + sql.ArrivingSequence + `' THEN 'next_id_seq' ELSE c.relname END),
    c.oid, c.relowner, c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)
  FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relname <> '` + sql.FenceMark + `'
  UNION ALL
  SELECT CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, format('%I.%I(%s)', $2, p.proname, (
      SELECT string_agg(format('%s%I.%I', CASE mode WHEN 'o' THEN 'OUT ' END, CASE nspname WHEN $1 THEN $2 ELSE nspname END, typname), ', ' ORDER BY place)
      FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes) WITH ORDINALITY args (type, mode, place)
        JOIN pg_type ty ON ty.oid = type JOIN pg_namespace n ON n.oid = typnamespace
      WHERE mode IS NULL OR mode IN ('i', 'b', 'v') OR mode = 'o' AND p.prokind = 'p')),
    p.oid, p.proowner, p.proacl, acldefault('f', p.proowner)
  FROM pg_proc p WHERE p.pronamespace = $1::regnamespace
  UNION ALL
  SELECT 'TYPE', format('%I.%I', $2, t.typname), t.oid, t.typowner, t.typacl, acldefault('T', t.typowner)
  FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid WHERE t.typnamespace = $1::regnamespace AND (t.typtype IN ('e', 'd', 'r') OR c.relkind = 'c')
  UNION ALL
  SELECT 'STATISTICS', format('%I.%I', $2, stxname), oid, stxowner, NULL, NULL FROM pg_statistic_ext WHERE stxnamespace = $1::regnamespace
), grants (kind, name, grantee, privilege, columns, grantable) AS (
  SELECT kind, name, grantee, privilege_type, NULL, bool_or(is_grantable) FROM things, aclexplode(coalesce(acl, initial)) GROUP BY 1, 2, 3, 4
  UNION ALL
  SELECT 'TABLE', format('%I.%I', $2, c.relname), a.grantee, a.privilege_type, quote_ident(t.attname), bool_or(a.is_grantable)
  FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid, aclexplode(t.attacl) a WHERE c.relnamespace = $1::regnamespace GROUP BY 1, 2, 3, 4, 5
), initial AS (
  SELECT kind, name, grantee, privilege_type, NULL, is_grantable FROM things, aclexplode(initial)
), roles (grantee, text) AS (
  SELECT oid, quote_ident(rolname) FROM pg_roles UNION ALL SELECT 0, 'PUBLIC'
), changed AS (
  SELECT DISTINCT kind, name, grantee, text FROM ((TABLE grants EXCEPT TABLE initial) UNION ALL (TABLE initial EXCEPT TABLE grants)) c JOIN roles USING (grantee)
), defaults (privilege, change, kinds, grantee, grantable) AS (
  SELECT a.privilege_type, format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I', pg_get_userbyid(d.defaclrole), $2),
    CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS' ELSE 'TYPES' END, a.grantee, a.is_grantable
  FROM pg_default_acl d, aclexplode(d.defaclacl) a WHERE d.defaclnamespace = $1::regnamespace
)`

// rightsQuery writes the owners, grants and default grants of things as statements.
const rightsQuery = things + `
SELECT statement FROM (
  SELECT 1, format('ALTER %s %s OWNER TO %I', kind, name, pg_get_userbyid(owner)) FROM things
    WHERE NOT (kind = 'SEQUENCE' AND EXISTS (
      SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = things.oid AND d.deptype IN ('a', 'i'))) -- goes with its table
  UNION ALL
  SELECT 2, format('REVOKE ALL ON %s %s FROM %s', kind, name, text) FROM changed
  UNION ALL
  SELECT 3, format('GRANT %s%s ON %s %s TO %s%s', privilege, ' (' || columns || ')', kind, name, text, CASE WHEN grantable THEN ' WITH GRANT OPTION' ELSE '' END)
    FROM grants JOIN changed USING (kind, name, grantee)
  UNION ALL
  SELECT 4, format('%s GRANT %s ON %s TO %s%s', change, privilege, kinds, text, CASE WHEN grantable THEN ' WITH GRANT OPTION' ELSE '' END)
    FROM defaults JOIN roles USING (grantee)
) s (rank, statement) ORDER BY rank, statement COLLATE "C"`

// noRightsQuery writes statements that leave only the privileges that the kinds of things give.
const noRightsQuery = things + `
SELECT statement FROM (
  SELECT 1, format('REVOKE ALL ON %s %s FROM %s CASCADE', kind, name, text) FROM changed
  UNION ALL
  SELECT DISTINCT 2, format('GRANT ALL ON %s %s TO %s', kind, name, text) FROM changed JOIN initial USING (kind, name, grantee)
  UNION ALL
  SELECT DISTINCT 3, format('%s REVOKE ALL ON %s FROM %s', change, kinds, text) FROM defaults JOIN roles USING (grantee)
) s (rank, statement) ORDER BY rank, statement`

// rights returns the statements that give a schema the owners and grants that one has on a host.
func rights(ctx context.Context, on *pgx.Conn, has, gets string) ([]string, error) {
	return session.Texts(ctx, on, rightsQuery, has, gets)
}

// CarryRights gives a schema of the target the owners and grants that the shard has on the source now, and reports whether that changed any. lock is
// its lock_timeout. Where the schema is hidden, it is shown meanwhile.
func CarryRights(ctx context.Context, source, target *pgx.Conn, m ledger.Move, schema string, hidden bool, lock time.Duration) (changed bool, err error) {
	want, err := rights(ctx, source, m.Schema, schema)
	if err != nil {
		return false, err
	}
	have, err := rights(ctx, target, schema, schema)
	if err != nil || slices.Equal(want, have) {
		return false, err
	}
	none, err := session.Texts(ctx, target, noRightsQuery, schema, schema)
	if err != nil {
		return false, err
	}
	show, hide := "", ""
	if hidden {
		show, hide = fence.Show(m), fence.Hide(m)
	}
	limit := fmt.Sprintf("SET LOCAL lock_timeout = %d;\n", lock.Milliseconds())
	if err := session.Run(ctx, target, "BEGIN; "+limit+show+strings.Join(append(none, want...), ";\n")+";\n"+hide+"COMMIT"); err != nil {
		return false, fmt.Errorf("owners and grants on %s: %w", m.Target, err)
	}
	return true, nil
}
