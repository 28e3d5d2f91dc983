package checks

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// subscriberQuery finds why logical replication would not work on the target. Its parameter: whether the subscription
// holds a password.
const subscriberQuery = `
WITH me AS (SELECT rolname, rolsuper, current_setting('server_version_num')::int >= 160000 AS modern FROM pg_roles WHERE rolname = current_user)
SELECT true, format('role %I may not make subscriptions: expected a superuser%s', rolname, CASE WHEN modern THEN ', or a member of pg_create_subscription' ELSE ', as Postgres 15 asks' END)
  FROM me WHERE NOT rolsuper AND NOT (modern AND EXISTS (SELECT FROM pg_roles p WHERE p.rolname = 'pg_create_subscription' AND pg_has_role(p.oid, 'usage')))
UNION ALL
SELECT true, format('role %I is no superuser, so its subscriptions must log in with a password: expected --login-with-password', rolname) FROM me WHERE NOT rolsuper AND modern AND NOT $1::boolean
UNION ALL
SELECT true, format('all but %s of %s workers for subscriptions are in use: expected 2 free ones (max_logical_replication_workers)', s.free, s.most)
  FROM (SELECT current_setting('max_logical_replication_workers')::int, current_setting('max_logical_replication_workers')::int - count(pid) FROM pg_stat_get_subscription(NULL)) s (most, free) WHERE s.free < 2
UNION ALL
SELECT true, format('%s of %s origins of subscriptions are in use: expected 2 free ones (%s)', s.used, s.most, s.setting)
  FROM (SELECT count(*), coalesce(current_setting('max_active_replication_origins', true), current_setting('max_replication_slots'))::int,
      CASE WHEN current_setting('max_active_replication_origins', true) IS NULL THEN 'max_replication_slots' ELSE 'max_active_replication_origins' END
    FROM pg_replication_origin) s (used, most, setting) WHERE s.most - s.used < 2
UNION ALL
SELECT true, format('max_worker_processes is %s, max_logical_replication_workers %s: expected more of the first, since all background workers share them', current_setting('max_worker_processes'), current_setting('max_logical_replication_workers'))
  WHERE current_setting('max_worker_processes')::int <= current_setting('max_logical_replication_workers')::int`

// copyQuery finds why the copy could not disable triggers and foreign keys.
const copyQuery = `
SELECT true, format('role %I may not set session_replication_role: expected a superuser, or GRANT SET ON PARAMETER session_replication_role', current_user)
WHERE NOT has_parameter_privilege('session_replication_role', 'SET')`

// hostQuery finds why a target cannot take a shard. Its parameters: the schema, the roles of the shard, and the owners
// among them.
var hostQuery = `
SELECT true, format('role %I may not make schemas: expected CREATE on the database', current_user) WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT true, format('role %I is missing: something of the shard belongs to it, or is granted to it', r) FROM unnest($2::text[]) r WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r)
UNION ALL
SELECT true, format('role %I may not make what belongs to %I: expected a member of it', current_user, o.rolname) FROM pg_roles o WHERE o.rolname = ANY ($3)
  AND NOT pg_has_role(o.oid, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)
UNION ALL
SELECT true, format('schema %I is there already: expected none, or drop it once no row is only in it', $1::text)
  WHERE to_regnamespace($1) IS NOT NULL AND NOT ` + sql.IsOldFence("$1::text") + `
UNION ALL
SELECT true, 'the server is a standby: expected a primary' WHERE pg_is_in_recovery()`

// forcedQueryOnTarget finds roles that may not write to tables with forced row-level security: the mover, and from
// Postgres 16 on their owners, with whose rights rows are applied. Its parameters: the owners, and whether no rows are
// applied.
const forcedQueryOnTarget = `
SELECT true, format('role %I may not write to tables that force row-level security: expected a superuser, or BYPASSRLS', rolname) FROM pg_roles
WHERE NOT (rolsuper OR rolbypassrls) AND (rolname = current_user OR rolname = ANY ($1) AND NOT $2 AND current_setting('server_version_num')::int >= 160000)`

// Way says how a shard moves.
type Way struct {
	Offline      bool // it is copied while it is locked
	WithPassword bool // the subscription holds a password

	Extensions []shards.Extension // that the move makes on the target if they are missing
}

// OnTarget finds why a host cannot take the shard.
func (s *Shard) OnTarget(ctx context.Context, conn *pgx.Conn, way Way) (Found, error) {
	var f Found
	if !way.Offline {
		if err := f.query(ctx, conn, subscriberQuery, way.WithPassword); err != nil {
			return f, err
		}
	}
	if err := f.query(ctx, conn, copyQuery); err != nil {
		return f, err
	}
	if err := f.query(ctx, conn, hostQuery, s.Schema, s.roles, s.owners); err != nil {
		return f, err
	}
	if err := s.comparePowers(ctx, conn, &f); err != nil {
		return f, err
	}
	if err := s.lends(ctx, conn, &f, true, !way.Offline); err != nil {
		return f, err
	}
	if err := s.largeOnTarget(ctx, conn, &f); err != nil {
		return f, err
	}
	if len(s.forced) > 0 {
		if err := f.query(ctx, conn, forcedQueryOnTarget, s.forced, way.Offline); err != nil {
			return f, err
		}
	}
	if err := s.namesOnTarget(ctx, conn, &f); err != nil {
		return f, err
	}
	if err := s.compareDatabases(ctx, conn, &f, way.Offline); err != nil {
		return f, err
	}
	if err := s.compareExtensions(ctx, conn, &f, way.Extensions); err != nil {
		return f, err
	}
	if err := s.compareShared(ctx, conn, &f); err != nil {
		return f, err
	}
	return f, s.compareCollations(ctx, conn, &f)
}

// compareDatabases compares encodings, locales and versions.
func (s *Shard) compareDatabases(ctx context.Context, conn *pgx.Conn, f *Found, offline bool) error {
	var version int
	var encoding, locale, libc string
	if err := conn.QueryRow(ctx, databaseQuery).Scan(&version, &encoding, &locale, &libc); err != nil {
		return err
	}
	if encoding != s.encoding {
		f.problem("the database is in %s, the source in %s: expected the same encoding", encoding, s.encoding)
	}
	switch {
	case locale != s.locale:
		f.problem("the database's locale is %q, the source's %q: expected the same, so that texts sort alike", strings.TrimSpace(locale), strings.TrimSpace(s.locale))
	case libc != s.libc:
		f.note("the database's collation is of version %s, the source's of %s: texts may sort otherwise; indexes are made anew", libc, s.libc)
	}
	for _, what := range s.barred {
		if version >= 160000 && !offline {
			f.problem("%s: expected it, since rows are applied with the owner's rights; or --offline", what)
		}
	}
	if version/10000 < s.version/10000 {
		f.note("it is Postgres %d, the source %d", version/10000, s.version/10000)
	}
	return nil
}
