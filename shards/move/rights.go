package move

import "context"

// rightsQuery writes the owners, grants and default grants of a schema and what is in it as statements.
const rightsQuery = `
WITH things (kind, name, owner, acl, initial) AS (
  SELECT 'SCHEMA', quote_ident(nspname), nspowner, nspacl, acldefault('n', nspowner) FROM pg_namespace WHERE nspname = $1
  UNION ALL
  SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, format('%I.%I', $1::text, c.relname), c.relowner, c.relacl,
    acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)
  FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i') -- goes with its column
  UNION ALL
  SELECT CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, format('%I.%I(%s)', $1::text, p.proname, pg_get_function_identity_arguments(p.oid)),
    p.proowner, p.proacl, acldefault('f', p.proowner)
  FROM pg_proc p WHERE p.pronamespace = $1::regnamespace
  UNION ALL
  SELECT 'TYPE', format('%I.%I', $1::text, t.typname), t.typowner, t.typacl, acldefault('T', t.typowner)
  FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid WHERE t.typnamespace = $1::regnamespace AND (t.typtype IN ('e', 'd', 'r') OR c.relkind = 'c')
), grants AS (
  SELECT t.kind, t.name, a.*, NULL::text AS columns FROM things t, aclexplode(t.acl) a WHERE a.grantee <> t.owner
  UNION ALL
  SELECT 'TABLE', format('%I.%I', $1::text, c.relname), a.*, quote_ident(t.attname)
  FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid, aclexplode(t.attacl) a WHERE c.relnamespace = $1::regnamespace AND a.grantee <> c.relowner
)
SELECT statement FROM (
  SELECT 1, format('ALTER %s %s OWNER TO %I', kind, name, pg_get_userbyid(owner)) FROM things
    WHERE pg_get_userbyid(owner) <> current_user AND NOT (kind = 'SEQUENCE' AND EXISTS (
      SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = to_regclass(name) AND d.deptype = 'a')) -- goes with its table
  UNION ALL
  SELECT 2, format('REVOKE ALL ON %s %s FROM PUBLIC', kind, name) FROM things t
    WHERE acl IS NOT NULL AND EXISTS (SELECT FROM aclexplode(initial) a WHERE a.grantee = 0)
  UNION ALL
  SELECT 3, format('GRANT %s%s ON %s %s TO %s%s', privilege_type, ' (' || columns || ')', kind, name,
    CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END, CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) FROM grants
  UNION ALL
  SELECT 4, format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT %s ON %s TO %s%s', pg_get_userbyid(d.defaclrole), $1::text, a.privilege_type,
    CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS' ELSE 'TYPES' END,
    CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
  FROM pg_default_acl d, aclexplode(d.defaclacl) a WHERE d.defaclnamespace = $1::regnamespace
) s (rank, statement) ORDER BY rank, statement`

// rights returns the statements that give the shard on the target the owners and grants that it has on the source.
func (j *job) rights(ctx context.Context) ([]string, error) {
	return texts(ctx, j.from, rightsQuery, j.Schema)
}
