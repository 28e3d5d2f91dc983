package checks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/large"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// Shard describes a shard on its source, and what it needs on a target.
type Shard struct {
	Found

	Schema   string
	Bytes    int64    // of its tables and indexes
	Keyless  []string // tables without a primary key and a replica identity
	version  int      // of Postgres, such as 170006
	encoding string
	locale   string // of the database: the provider and the locale's name
	libc     string // the version of that locale
	large    []large.Object
	apart    int64    // bytes that are not replicated: of unlogged tables and large objects
	owners   []string // roles
	powers   []power  // of owners
	calls    []call   // for each row that is written
	barred   []string // why some owners of tables may not write to them
	forced   []string // owners of tables whose row-level security applies to owners, too
	roles    []string // that own an object or have privileges on one
	// The same for large objects.
	largeOwners []string
	largeRoles  []string
	extensions  []extension
	shared      []string // migrations that run once a host, from the source's ledger
	collations  []collation
	named       []rows.Part // values that name objects
	names       []names     // of these, the objects that the target must have
}

// IsKeyless is a condition on a table c: Postgres cannot replicate updates and deletes of its rows, because it has no
// primary key and no replica identity, or the index of the identity was dropped. A deferrable primary key is no replica
// identity.
const IsKeyless = `c.relkind = 'r' AND c.relpersistence = 'p' AND (c.relreplident = 'n' OR c.relreplident IN ('d', 'i')
  AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary AND i.indimmediate ELSE i.indisreplident END))`

// keyless returns the names of such tables.
const keyless = `SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND ` + IsKeyless + ` ORDER BY 1`

// RefusedTruncates returns the tables whose TRUNCATE … CASCADE a subscription cannot apply: if a partitioned table
// refers to one, Postgres sends the partitions but not the partitioned table, and truncates none without it.
const RefusedTruncates = `
SELECT DISTINCT format('%s, to which partitioned table %s refers', con.confrelid::regclass, con.conrelid::regclass)
  FROM pg_constraint con JOIN pg_class c ON c.oid = con.conrelid WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'p' AND con.contype = 'f' AND con.conparentid = 0 ORDER BY 1`

// logicalQuery finds why logical replication would not work on the source.
const logicalQuery = `
SELECT true, 'wal_level is ' || current_setting('wal_level') || ': expected logical, which takes a restart; or --offline' WHERE current_setting('wal_level') <> 'logical'
UNION ALL
SELECT true, format('all but %s of %s replication slots are in use: expected 2 free ones (max_replication_slots)', s.free, s.most)
  FROM (SELECT current_setting('max_replication_slots')::int, current_setting('max_replication_slots')::int - count(*) FROM pg_replication_slots) s (most, free) WHERE s.free < 2
UNION ALL
SELECT true, format('all but %s of %s WAL senders are in use: expected 2 free ones (max_wal_senders)', s.free, s.most)
  FROM (SELECT current_setting('max_wal_senders')::int, current_setting('max_wal_senders')::int - count(*) FROM pg_stat_replication) s (most, free) WHERE s.free < 2
UNION ALL
SELECT true, format('role %I may not make slots: expected REPLICATION, or a superuser', rolname) FROM pg_roles WHERE rolname = current_user AND NOT (rolsuper OR rolreplication)
UNION ALL
SELECT true, format('table %I.%I has no replica identity but its whole rows, and column %I is of type %s, which has no equality: expected a primary key that is not deferrable',
    $1::text, c.relname, a.attname, format_type(a.atttypid, a.atttypmod))
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = to_regnamespace($1) AND (c.relname = ANY ($2) OR c.relreplident = 'f' AND c.relkind = 'r' AND c.relpersistence = 'p') AND EXISTS (
    WITH RECURSIVE made (type) AS (
      SELECT a.atttypid UNION SELECT unnest(ARRAY[t.typbasetype, t.typelem]) FROM made m JOIN pg_type t ON t.oid = m.type
    ) SELECT FROM made WHERE type = ANY ('{json,jsonpath,xml,point,box,polygon,line,path,lseg,circle,pg_snapshot,txid_snapshot,refcursor}'::regtype[]))
UNION ALL
SELECT false, format('table %I has no replica identity: while it moves it has REPLICA IDENTITY FULL, and each update or delete of it reads the whole table on the target', relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relname = ANY ($2)
UNION ALL
SELECT false, format('a TRUNCATE … CASCADE of %s, is refused by the target while the shard moves, and ends the move: expected none until then, or --offline', t) FROM (` + RefusedTruncates + `) refused (t)
UNION ALL
SELECT true, format('unlogged tables and large objects take %s, and are copied while callers wait: expected at most %s; or --offline', pg_size_pretty($3::bigint), pg_size_pretty($4::bigint)) WHERE $3 > $4`

// shardQuery finds problems with the shard and the role.
const shardQuery = `
SELECT true, 'the schema is not there' WHERE to_regnamespace($1) IS NULL
UNION ALL
SELECT true, 'the shard is being adopted, and its rows are in the old tables, too: expected kiloshard adopt finish before' WHERE EXISTS (
  SELECT FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'v' AND obj_description(c.oid, 'pg_class') = 'made by kiloshard adopt views'
  UNION ALL SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
  WHERE c.relnamespace = to_regnamespace($1) AND p.pronamespace = to_regnamespace('kiloshard_adopt'))
UNION ALL
SELECT true, format('role %I may not make publications and schemas: expected CREATE on the database', current_user) WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT true, format('role %I does not own schema %I: expected its owner, for the new name that the fence gives it', current_user, nspname) FROM pg_namespace WHERE nspname = $1 AND NOT pg_has_role(nspowner, 'usage')
UNION ALL
SELECT true, format('role %I does not own %I.%I: expected its owner, for the publication and the locks', current_user, $1::text, relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p', 'S') AND NOT pg_has_role(relowner, 'usage')
UNION ALL
SELECT true, format('role %I may not read and set sequence %I: expected SELECT and UPDATE on it', current_user, relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND CASE relkind WHEN 'S' THEN NOT (has_sequence_privilege(oid, 'SELECT') AND has_sequence_privilege(oid, 'UPDATE')) END
UNION ALL
SELECT true, format('role %I does not see all rows of %I, which has row-level security: expected a superuser, or BYPASSRLS', current_user, relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p') AND row_security_active(oid)
UNION ALL
SELECT false, format('role %I does not see how long the transactions of other roles last: expected pg_read_all_stats, so that a cutover does not begin behind one', current_user)
  WHERE NOT pg_has_role('pg_read_all_stats', 'usage')
UNION ALL
SELECT true, format('trigger %I on %I fires for replicated rows, too (ENABLE %s): the target would call it for each row of the copy; expected an ordinary trigger',
    tgname, c.relname, CASE tgenabled WHEN 'A' THEN 'ALWAYS' ELSE 'REPLICA' END)
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = to_regnamespace($1) AND t.tgenabled IN ('A', 'R')
UNION ALL
SELECT true, 'the server is a standby: expected a primary' WHERE pg_is_in_recovery()`

// ownersQuery returns the roles that own objects of a schema, or have default privileges there.
const ownersQuery = `
SELECT DISTINCT pg_get_userbyid(r)::text FROM (
  SELECT nspowner FROM pg_namespace WHERE nspname = $1
  UNION SELECT relowner FROM pg_class WHERE relnamespace = to_regnamespace($1)
  UNION SELECT proowner FROM pg_proc WHERE pronamespace = to_regnamespace($1)
  UNION SELECT typowner FROM pg_type WHERE typnamespace = to_regnamespace($1)
  UNION SELECT stxowner FROM pg_statistic_ext WHERE stxnamespace = to_regnamespace($1)
  UNION SELECT defaclrole FROM pg_default_acl WHERE defaclnamespace = to_regnamespace($1)
) s (r)`

// rolesQuery returns the roles that own objects of a schema, have privileges or default privileges there, or have a policy.
const rolesQuery = ownersQuery + `
UNION
SELECT DISTINCT pg_get_userbyid(r)::text FROM (
  SELECT a.grantee FROM pg_namespace, aclexplode(nspacl) a WHERE nspname = $1
  UNION SELECT a.grantee FROM pg_class, aclexplode(relacl) a WHERE relnamespace = to_regnamespace($1)
  UNION SELECT a.grantee FROM pg_proc, aclexplode(proacl) a WHERE pronamespace = to_regnamespace($1)
  UNION SELECT a.grantee FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid, aclexplode(t.attacl) a WHERE c.relnamespace = to_regnamespace($1)
  UNION SELECT a.grantee FROM pg_type, aclexplode(typacl) a WHERE typnamespace = to_regnamespace($1)
  UNION SELECT a.grantee FROM pg_default_acl, aclexplode(defaclacl) a WHERE defaclnamespace = to_regnamespace($1)
  UNION SELECT unnest(p.polroles) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relnamespace = to_regnamespace($1)
) s (r) WHERE r <> 0`

// barredQuery finds owners that may not write to their tables: from Postgres 16 on, rows are applied with the owner's
// rights.
const barredQuery = `
SELECT DISTINCT format('role %s owns tables of the shard, and on the source it has no USAGE on the schema', pg_get_userbyid(relowner))
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND NOT has_schema_privilege(relowner, relnamespace, 'USAGE')
UNION ALL
SELECT format('role %s owns table %I, and on the source it has no INSERT on it', pg_get_userbyid(relowner), relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relpersistence = 'p' AND NOT has_table_privilege(relowner, oid, 'INSERT')`

// forcedQuery returns the owners of tables whose row-level security applies to them.
const forcedQuery = `
SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relrowsecurity AND relforcerowsecurity`

// extensionsQuery returns the extensions that objects of a schema depend on.
const extensionsQuery = `
SELECT DISTINCT e.extname::text, e.extversion, e.extnamespace::regnamespace::text FROM pg_depend d
JOIN pg_depend x ON x.classid = d.refclassid AND x.objid = d.refobjid AND x.deptype = 'e' AND x.refclassid = 'pg_extension'::regclass
JOIN pg_extension e ON e.oid = x.refobjid
WHERE d.classid = 'pg_class'::regclass AND d.objid IN (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace($1))
  OR d.classid = 'pg_proc'::regclass AND d.objid IN (SELECT oid FROM pg_proc WHERE pronamespace = to_regnamespace($1))
  OR d.classid = 'pg_type'::regclass AND d.objid IN (SELECT oid FROM pg_type WHERE typnamespace = to_regnamespace($1))
  OR d.classid = 'pg_attrdef'::regclass AND d.objid IN (SELECT a.oid FROM pg_attrdef a JOIN pg_class c ON c.oid = a.adrelid WHERE c.relnamespace = to_regnamespace($1))
  OR d.classid = 'pg_constraint'::regclass AND d.objid IN (SELECT oid FROM pg_constraint WHERE connamespace = to_regnamespace($1))
  OR d.classid = 'pg_rewrite'::regclass AND d.objid IN (SELECT r.oid FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class WHERE c.relnamespace = to_regnamespace($1))
  OR d.classid = 'pg_trigger'::regclass AND d.objid IN (SELECT t.oid FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = to_regnamespace($1))
  OR d.classid = 'pg_policy'::regclass AND d.objid IN (SELECT p.oid FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relnamespace = to_regnamespace($1))`

// databaseQuery returns a database's encoding and locale. The column with the locale differs between releases of Postgres.
const databaseQuery = `
SELECT current_setting('server_version_num')::int, pg_encoding_to_char(d.encoding),
  format('%s %s %s %s', d.datlocprovider, d.datcollate, d.datctype, coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')),
  coalesce(pg_database_collation_actual_version(d.oid), '-')
FROM pg_database d WHERE d.datname = current_database()`

// mostApart is the most bytes that are copied while callers wait, because they are not replicated.
const mostApart int64 = 16 << 20

// OnSource finds why the shard in a schema cannot leave its host, and what a target must have for it. With offline it
// does not check logical replication.
func OnSource(ctx context.Context, conn *pgx.Conn, schema string, offline bool) (*Shard, error) {
	s := &Shard{Schema: schema}
	var err error
	if s.Keyless, err = session.Texts(ctx, conn, keyless, schema); err != nil {
		return nil, err
	}
	const unloggedSize = `SELECT coalesce(sum(pg_table_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relpersistence = 'u'`
	if err := conn.QueryRow(ctx, unloggedSize, schema).Scan(&s.apart); err != nil {
		return nil, err
	}
	if err := s.largeObjects(ctx, conn); err != nil {
		return nil, err
	}
	if !offline {
		if err := s.query(ctx, conn, logicalQuery, schema, s.Keyless, s.apart, mostApart); err != nil {
			return nil, err
		}
	}
	if err := s.query(ctx, conn, shardQuery, schema); err != nil {
		return nil, err
	}
	for _, query := range []string{leftQuery, partitionsQuery, bareNamesQuery} {
		if err := s.query(ctx, conn, query, schema); err != nil {
			return nil, err
		}
	}
	if !offline {
		const late = "the target refuses rows with values that violate it and that are changed while it moves: expected none; or --offline"
		if err := s.query(ctx, conn, unvalidatedQuery, schema, false, late); err != nil {
			return nil, err
		}
	}
	if err := s.readNames(ctx, conn); err != nil {
		return nil, err
	}
	held, err := s.holds(ctx, conn)
	if err != nil {
		return nil, err
	}
	if !held { // else objects of the extension depend on the shard
		if err := s.outside(ctx, conn); err != nil {
			return nil, err
		}
	}
	if err := conn.QueryRow(ctx, databaseQuery).Scan(&s.version, &s.encoding, &s.locale, &s.libc); err != nil {
		return nil, err
	}
	const size = `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'`
	if err := conn.QueryRow(ctx, size, schema).Scan(&s.Bytes); err != nil {
		return nil, err
	}
	for query, into := range map[string]*[]string{ownersQuery: &s.owners, barredQuery: &s.barred, forcedQuery: &s.forced, rolesQuery: &s.roles} {
		if *into, err = session.Texts(ctx, conn, query, schema); err != nil {
			return nil, err
		}
	}
	if s.extensions, err = extensions(ctx, conn, extensionsQuery, schema); err != nil {
		return nil, err
	}
	if s.shared, err = sharedFiles(ctx, conn); err != nil {
		return nil, err
	}
	if s.collations, err = collations(ctx, conn, schema, nil); err != nil {
		return nil, err
	}
	s.owners, s.roles = append(s.owners, s.largeOwners...), append(s.roles, s.largeRoles...)
	if s.powers, err = readPowers(ctx, conn, s.owners); err != nil {
		return nil, err
	}
	s.calls, err = readCalls(ctx, conn, schema)
	return s, err
}
