package checks

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Shard is what the source knows of a shard that its target must have, too.
type Shard struct {
	Found

	Schema   string
	Bytes    int64    // of its tables and indexes
	Keyless  []string // tables without a primary key and a replica identity
	version  int      // of Postgres, such as 170006
	encoding string
	locale   string   // of the database: the provider and what it is called
	libc     string   // the version of that locale
	owners   []string // roles
	barred   []string // those that own tables and may not use the schema
	forced   []string // those that own tables whose row-level security is for owners, too
	roles    []string // that own or may use something
	// Names and versions, as "name version".
	extensions []string
	collations []string
}

// keyless names the tables whose updates and deletes cannot be replicated as they are.
const keyless = `
SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r'
  AND (c.relreplident = 'n' OR c.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)) ORDER BY 1`

// logicalQuery finds what logical replication lacks on the source.
const logicalQuery = `
SELECT true, 'wal_level is ' || current_setting('wal_level') || ': expected logical, which takes a restart; or --offline' WHERE current_setting('wal_level') <> 'logical'
UNION ALL
SELECT true, format('all but %s of %s replication slots are in use: expected 3 free ones (max_replication_slots)', s.free, s.most)
  FROM (SELECT current_setting('max_replication_slots')::int, current_setting('max_replication_slots')::int - count(*) FROM pg_replication_slots) s (most, free) WHERE s.free < 3
UNION ALL
SELECT true, format('all but %s of %s WAL senders are in use: expected 3 free ones (max_wal_senders)', s.free, s.most)
  FROM (SELECT current_setting('max_wal_senders')::int, current_setting('max_wal_senders')::int - count(*) FROM pg_stat_replication) s (most, free) WHERE s.free < 3
UNION ALL
SELECT true, format('role %I may not make slots: expected REPLICATION, or a superuser', rolname) FROM pg_roles WHERE rolname = current_user AND NOT (rolsuper OR rolreplication)
UNION ALL
SELECT true, format('table %I.%I has no primary key and no replica identity, and column %I is of type %s, which has no equality: expected a primary key', $1::text, c.relname, a.attname, format_type(a.atttypid, a.atttypmod))
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = to_regnamespace($1) AND c.relname = ANY ($2)
    AND a.atttypid IN (SELECT unnest(ARRAY[t.oid, t.typarray]) FROM pg_type t WHERE t.oid = ANY ('{json,xml,point,box,polygon,line,path,lseg,circle}'::regtype[]))
UNION ALL
SELECT false, format('table %I has no primary key and no replica identity: while it moves it has REPLICA IDENTITY FULL, and each update or delete of it reads the whole table on the target', relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relname = ANY ($2)
UNION ALL
SELECT true, format('table %I is unlogged, so it is not replicated: expected a logged one, or none; or --offline', relname) FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relpersistence = 'u'`

// shardQuery finds what is wrong with the shard and the role.
const shardQuery = `
SELECT true, 'the schema is not there' WHERE to_regnamespace($1) IS NULL
UNION ALL
SELECT true, format('role %I may not make publications and schemas: expected CREATE on the database', current_user) WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT true, format('role %I does not own schema %I: expected its owner, for the new name that the fence gives it', current_user, nspname) FROM pg_namespace WHERE nspname = $1 AND NOT pg_has_role(nspowner, 'usage')
UNION ALL
SELECT true, format('role %I does not own %I.%I: expected its owner, for the publication and the locks', current_user, $1::text, relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p', 'S') AND NOT pg_has_role(relowner, 'usage')
UNION ALL
SELECT true, format('role %I does not see all rows of %I, which has row-level security: expected a superuser, or BYPASSRLS', current_user, relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p') AND row_security_active(oid)
UNION ALL
SELECT false, format('role %I does not see how long the transactions of other roles last: expected pg_read_all_stats, so that a cutover does not begin behind one', current_user)
  WHERE NOT pg_has_role('pg_read_all_stats', 'usage')
UNION ALL
SELECT true, format('materialised view %I: expected none, since its rows are not replicated; drop it, and make it again after the move', relname) FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'm'
UNION ALL
SELECT true, 'the server is a standby: expected a primary' WHERE pg_is_in_recovery()`

// ownersQuery names the roles that own something of a schema.
const ownersQuery = `
SELECT DISTINCT pg_get_userbyid(r)::text FROM (
  SELECT nspowner FROM pg_namespace WHERE nspname = $1
  UNION SELECT relowner FROM pg_class WHERE relnamespace = to_regnamespace($1)
  UNION SELECT proowner FROM pg_proc WHERE pronamespace = to_regnamespace($1)
  UNION SELECT typowner FROM pg_type WHERE typnamespace = to_regnamespace($1)
) s (r)`

// rolesQuery names the roles that own something of a schema or may use it.
const rolesQuery = ownersQuery + `
UNION
SELECT DISTINCT pg_get_userbyid(r)::text FROM (
  SELECT a.grantee FROM pg_namespace, aclexplode(nspacl) a WHERE nspname = $1
  UNION SELECT a.grantee FROM pg_class, aclexplode(relacl) a WHERE relnamespace = to_regnamespace($1)
  UNION SELECT a.grantee FROM pg_proc, aclexplode(proacl) a WHERE pronamespace = to_regnamespace($1)
  UNION SELECT a.grantee FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid, aclexplode(t.attacl) a WHERE c.relnamespace = to_regnamespace($1)
) s (r) WHERE r <> 0`

// barredQuery names the owners of tables that may not use the schema: from Postgres 16 on rows are applied with the owner's rights.
const barredQuery = `
SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND NOT has_schema_privilege(relowner, relnamespace, 'USAGE')`

// forcedQuery names the owners of tables whose row-level security applies to them.
const forcedQuery = `
SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relrowsecurity AND relforcerowsecurity`

// extensionsQuery names the extensions that something of a schema needs, with their versions.
const extensionsQuery = `
SELECT DISTINCT e.extname || ' ' || e.extversion FROM pg_depend d
JOIN pg_depend x ON x.classid = d.refclassid AND x.objid = d.refobjid AND x.deptype = 'e' AND x.refclassid = 'pg_extension'::regclass
JOIN pg_extension e ON e.oid = x.refobjid
WHERE d.classid = 'pg_class'::regclass AND d.objid IN (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace($1))
  OR d.classid = 'pg_proc'::regclass AND d.objid IN (SELECT oid FROM pg_proc WHERE pronamespace = to_regnamespace($1))
  OR d.classid = 'pg_type'::regclass AND d.objid IN (SELECT oid FROM pg_type WHERE typnamespace = to_regnamespace($1))
  OR d.classid = 'pg_attrdef'::regclass AND d.objid IN (SELECT a.oid FROM pg_attrdef a JOIN pg_class c ON c.oid = a.adrelid WHERE c.relnamespace = to_regnamespace($1))
  OR d.classid = 'pg_constraint'::regclass AND d.objid IN (SELECT oid FROM pg_constraint WHERE connamespace = to_regnamespace($1))`

// collationsQuery names the collations of a schema's columns, but the database's, with their versions.
const collationsQuery = `
SELECT DISTINCT format('%I.%I %s', n.nspname, o.collname, coalesce(pg_collation_actual_version(o.oid), '-'))
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_collation o ON o.oid = a.attcollation JOIN pg_namespace n ON n.oid = o.collnamespace
WHERE c.relnamespace = to_regnamespace($1) AND o.collprovider <> 'd' AND n.nspname <> $1 AND a.attnum > 0 AND NOT a.attisdropped`

// databaseQuery says in which encoding and locale a database is. What names the locale differs between releases.
const databaseQuery = `
SELECT current_setting('server_version_num')::int, pg_encoding_to_char(d.encoding),
  format('%s %s %s %s', d.datlocprovider, d.datcollate, d.datctype, coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')),
  coalesce(pg_database_collation_actual_version(d.oid), '-')
FROM pg_database d WHERE d.datname = current_database()`

// OnSource finds what keeps the shard in a schema from leaving its host, and what the target must have for it. With offline
// nothing is asked of logical replication.
func OnSource(ctx context.Context, conn *pgx.Conn, schema string, offline bool) (*Shard, error) {
	s := &Shard{Schema: schema}
	var err error
	if s.Keyless, err = texts(ctx, conn, keyless, schema); err != nil {
		return nil, err
	}
	if !offline {
		if err := s.take(ctx, conn, logicalQuery, schema, s.Keyless); err != nil {
			return nil, err
		}
	}
	if err := s.take(ctx, conn, shardQuery, schema); err != nil {
		return nil, err
	}
	if err := s.largeObjects(ctx, conn); err != nil {
		return nil, err
	}
	if err := conn.QueryRow(ctx, databaseQuery).Scan(&s.version, &s.encoding, &s.locale, &s.libc); err != nil {
		return nil, err
	}
	const size = `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'`
	if err := conn.QueryRow(ctx, size, schema).Scan(&s.Bytes); err != nil {
		return nil, err
	}
	for query, into := range map[string]*[]string{ownersQuery: &s.owners, barredQuery: &s.barred, forcedQuery: &s.forced, rolesQuery: &s.roles, extensionsQuery: &s.extensions, collationsQuery: &s.collations} {
		if *into, err = texts(ctx, conn, query, schema); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// largeObjects finds the columns whose values are those of large objects: these are in no schema, and would stay.
func (s *Shard) largeObjects(ctx context.Context, conn *pgx.Conn) error {
	const query = `
		SELECT format('SELECT %L WHERE EXISTS (SELECT FROM %I.%I t JOIN pg_largeobject_metadata m ON m.oid = t.%I)', c.relname || '.' || a.attname, $1::text, c.relname, a.attname)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
		WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND 'oid'::regtype IN (t.oid, t.typbasetype)
			AND EXISTS (SELECT FROM pg_largeobject_metadata) AND has_table_privilege(c.oid, 'SELECT')`
	columns, err := texts(ctx, conn, query, s.Schema)
	if err != nil || len(columns) == 0 {
		return err
	}
	found, err := texts(ctx, conn, strings.Join(columns, " UNION ALL "))
	for _, column := range found {
		s.problem("%s refers to large objects, which are in no schema and would stay: expected none", column)
	}
	return err
}
