package checks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// returnQuery finds why a target cannot keep a way back.
const returnQuery = `
SELECT true, 'wal_level is ' || current_setting('wal_level') || ': expected logical, for the way back' WHERE current_setting('wal_level') <> 'logical'
UNION ALL
SELECT true, format('all %s replication slots are in use: expected a free one for the way back (max_replication_slots)', current_setting('max_replication_slots'))
  WHERE (SELECT count(*) FROM pg_replication_slots) >= current_setting('max_replication_slots')::int
UNION ALL
SELECT false, format('idle_replication_slot_timeout is %s: the way back ends once nobody has kept it for so long (kiloshard move keep)', current_setting('idle_replication_slot_timeout'))
  WHERE coalesce(current_setting('idle_replication_slot_timeout', true), '0') !~ '^0'
UNION ALL
SELECT true, format('role %I may not make slots: expected REPLICATION, or a superuser, for the way back', rolname) FROM pg_roles WHERE rolname = current_user AND NOT (rolsuper OR rolreplication)`

// returnedQuery finds tables whose changes cannot be applied to the old schema.
const returnedQuery = `
SELECT true, format('table %I is unlogged, so there is no way back for it: expected a logged one, or a move without --rollback-for', relname)
  FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relpersistence = 'u'
UNION ALL
SELECT true, format('table %I has no replica identity, so there is no way back for it: expected a primary key that is not deferrable, or a move without --rollback-for', t) FROM unnest($2::text[]) t`

// openWaysQuery names the slots of ways back of earlier moves to a host: these would lose writes on another host.
const openWaysQuery = `
SELECT true, format('slot %s keeps the way back of an earlier move open: expected move rollback, or move clean with the shard''s number, which closes it', slot_name)
FROM pg_replication_slots WHERE slot_name LIKE $1 AND database = current_database()`

// OpenWays finds the ways back of earlier moves of a shard to a host.
func OpenWays(ctx context.Context, conn *pgx.Conn, n shards.Number) (f Found, err error) {
	return f, f.query(ctx, conn, openWaysQuery, fmt.Sprintf("kiloshard_move_%05d_%%_back", n))
}

// WayBack finds why the shard could not be rolled back after a move.
func (s *Shard) WayBack(ctx context.Context, source, target *pgx.Conn) (onSource, onTarget Found, err error) {
	if err := onSource.query(ctx, source, copyQuery); err != nil {
		return onSource, onTarget, err
	}
	if len(s.large) > 0 {
		onSource.problem("%d large objects, whose changes are not replicated, so there is no way back for them: expected none, or a move without --rollback-for", len(s.large))
	}
	if err := onSource.query(ctx, source, returnedQuery, s.Schema, s.Keyless); err != nil {
		return onSource, onTarget, err
	}
	const none = "there is no way back for values that violate it: expected VALIDATE CONSTRAINT, or a move without --rollback-for"
	if err := onSource.query(ctx, source, unvalidatedQuery, s.Schema, true, none); err != nil {
		return onSource, onTarget, err
	}
	if err := s.lends(ctx, source, &onSource, false, true); err != nil {
		return onSource, onTarget, err
	}
	if err := s.namesBack(ctx, source, &onSource); err != nil {
		return onSource, onTarget, err
	}
	return onSource, onTarget, onTarget.query(ctx, target, returnQuery)
}
