package move

import (
	"context"
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/sql"
)

// CheckError says why a shard cannot be moved: all that was found, so that it can be put right at once.
type CheckError struct{ Problems []string }

// Error joins what was found.
func (e *CheckError) Error() string { return strings.Join(e.Problems, "; ") }

// sourceCheck finds what is wrong on the source. Its parameters: the schema.
const sourceCheck = `
SELECT 'wal_level is ' || current_setting('wal_level') || ': expected logical, which takes a restart' WHERE current_setting('wal_level') <> 'logical'
UNION ALL
SELECT format('all but %s of %s replication slots are in use: expected 3 free ones (max_replication_slots)', s.free, s.most)
  FROM (SELECT current_setting('max_replication_slots')::int, current_setting('max_replication_slots')::int - count(*) FROM pg_replication_slots) s (most, free) WHERE s.free < 3
UNION ALL
SELECT format('all but %s of %s WAL senders are in use: expected 3 free ones (max_wal_senders)', s.free, s.most)
  FROM (SELECT current_setting('max_wal_senders')::int, current_setting('max_wal_senders')::int - count(*) FROM pg_stat_replication) s (most, free) WHERE s.free < 3
UNION ALL
SELECT format('role %I may not make slots: expected REPLICATION, or a superuser', rolname) FROM pg_roles WHERE rolname = current_user AND NOT (rolsuper OR rolreplication)
UNION ALL
SELECT format('role %I may not make publications: expected CREATE on the database', current_user) WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT format('role %I does not own %I.%I: expected its owner, for the publication and the locks', current_user, $1::text, relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'S') AND NOT pg_has_role(relowner, 'usage')
UNION ALL
SELECT format('table %I has no primary key and no replica identity: expected one, so that updates and deletes can be replicated; ALTER TABLE %I.%1$I REPLICA IDENTITY FULL will do for the move', c.relname, $1::text)
  FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r'
    AND (c.relreplident = 'n' OR c.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary))
UNION ALL
SELECT format('table %I is unlogged, so it is not replicated: expected a logged one, or none', relname) FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relpersistence = 'u'
UNION ALL
SELECT format('materialised view %I: expected none, since its rows are not replicated; drop it, and make it again after the move', relname) FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'm'
UNION ALL
SELECT 'the schema is not there' WHERE to_regnamespace($1) IS NULL`

// targetCheck finds what is wrong on the target. Its parameters: the schema, the relation that marks a fence, and of the
// source the encoding, the roles that own or may use something, and the extensions.
const targetCheck = `
SELECT format('role %I may not make subscriptions: expected a superuser%s', r.rolname, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN ', or pg_create_subscription and CREATE on the database' ELSE ', as Postgres 15 asks' END)
  FROM pg_roles r WHERE r.rolname = current_user AND NOT r.rolsuper
    AND NOT (current_setting('server_version_num')::int >= 160000 AND EXISTS (SELECT FROM pg_roles p WHERE p.rolname = 'pg_create_subscription' AND pg_has_role(p.oid, 'usage')))
UNION ALL
SELECT format('all but %s of %s workers for subscriptions are in use: expected 2 free ones (max_logical_replication_workers)', s.free, s.most)
  FROM (SELECT current_setting('max_logical_replication_workers')::int, current_setting('max_logical_replication_workers')::int - count(*)
    FROM pg_stat_activity WHERE backend_type LIKE 'logical replication %worker') s (most, free) WHERE s.free < 2
UNION ALL
SELECT format('the database is in %s, the source in %s: expected the same encoding', pg_encoding_to_char(encoding), $3::text) FROM pg_database
  WHERE datname = current_database() AND pg_encoding_to_char(encoding) <> $3
UNION ALL
SELECT format('role %I is missing: something of the shard belongs to it, or is granted to it', r) FROM unnest($4::text[]) r WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r)
UNION ALL
SELECT format('extension %s is missing', e) FROM unnest($5::text[]) e WHERE NOT EXISTS (SELECT FROM pg_extension WHERE extname || ' ' || extversion = e)
UNION ALL
SELECT format('schema %I is there already: expected none, or drop it once no row is only in it', $1::text)
  WHERE to_regnamespace($1) IS NOT NULL AND to_regclass($1 || '.' || $2) IS NULL
UNION ALL
SELECT 'the server is a standby: expected a primary' WHERE pg_is_in_recovery()`

// rolesQuery names the roles that own something of a schema or may use it.
const rolesQuery = `
SELECT DISTINCT pg_get_userbyid(r) FROM (
  SELECT nspowner FROM pg_namespace WHERE nspname = $1
  UNION SELECT a.grantee FROM pg_namespace, aclexplode(nspacl) a WHERE nspname = $1
  UNION SELECT relowner FROM pg_class WHERE relnamespace = to_regnamespace($1)
  UNION SELECT a.grantee FROM pg_class, aclexplode(relacl) a WHERE relnamespace = to_regnamespace($1)
  UNION SELECT proowner FROM pg_proc WHERE pronamespace = to_regnamespace($1)
  UNION SELECT a.grantee FROM pg_proc, aclexplode(proacl) a WHERE pronamespace = to_regnamespace($1)
) s (r) WHERE r <> 0`

// extensionsQuery names the extensions that something of a schema needs, with their versions.
const extensionsQuery = `
SELECT DISTINCT e.extname || ' ' || e.extversion FROM pg_depend d JOIN pg_depend x ON x.classid = d.refclassid AND x.objid = d.refobjid AND x.deptype = 'e' AND x.refclassid = 'pg_extension'::regclass
JOIN pg_extension e ON e.oid = x.refobjid
WHERE d.classid = 'pg_class'::regclass AND d.objid IN (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace($1))`

// check finds all that is known beforehand to keep the shard from being moved. It changes nothing.
func (j *job) check(ctx context.Context) error {
	var under bool
	err := j.from.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE shard = $1 AND outcome IS NULL)`, j.Shard).Scan(&under)
	switch {
	case err != nil:
		return err
	case under:
		return fmt.Errorf("%w: see kiloshard move status", ErrUnderWay)
	}
	e := &CheckError{}
	const longest = 63
	if len(j.moved()) > longest {
		e.Problems = append(e.Problems, fmt.Sprintf("name %s is longer than %d characters: expected a shorter schema_prefix", j.moved(), longest))
	}
	found, err := texts(ctx, j.from, sourceCheck, j.Schema)
	if err != nil {
		return err
	}
	e.add(j.Source, found)
	var encoding string
	if err := j.from.QueryRow(ctx, `SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()`).Scan(&encoding); err != nil {
		return err
	}
	roles, err := texts(ctx, j.from, rolesQuery, j.Schema)
	if err != nil {
		return err
	}
	extensions, err := texts(ctx, j.from, extensionsQuery, j.Schema)
	if err != nil {
		return err
	}
	if found, err = texts(ctx, j.to, targetCheck, j.Schema, sql.FenceMark, encoding, roles, extensions); err != nil {
		return err
	}
	e.add(j.Target, found)
	if len(e.Problems) > 0 {
		return e
	}
	return j.checkLogin(ctx)
}

func (e *CheckError) add(host string, problems []string) {
	for _, p := range problems {
		e.Problems = append(e.Problems, host+": "+p)
	}
}

// checkLogin has the target log in to the source, by a subscription that is rolled back.
func (j *job) checkLogin(ctx context.Context) error {
	tx, err := j.to.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return j.makeSubscription(ctx, tx)
}
