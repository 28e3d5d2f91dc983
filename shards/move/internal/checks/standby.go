package checks

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/connect"
)

// Standby is a standby to promote, and its primary.
type Standby struct {
	Source, Target *pgx.Conn
	SourceName     string   // in the map
	Leaving        []string // schemas
	Schemas        string   // the pattern of all shards' schemas
}

// primaryQuery finds why a primary cannot give shards to its standby. Its parameters: the schemas that leave, and the
// standby's application_name.
const primaryQuery = `
SELECT true, format('schema %I is not there', s) FROM unnest($1::text[]) s WHERE to_regnamespace(s) IS NULL
UNION ALL
SELECT true, format('role %I does not own schema %I: expected its owner, for the new name that the fence gives it', current_user, nspname)
  FROM pg_namespace WHERE nspname = ANY ($1) AND NOT pg_has_role(nspowner, 'usage')
UNION ALL
SELECT true, format('role %I does not own %s: expected its owner, for the locks', current_user, c.oid::regclass)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p', 'S') AND NOT pg_has_role(c.relowner, 'usage')
UNION ALL
SELECT true, format('%s is unlogged, so it is empty on a standby: expected a logged one', c.oid::regclass)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'S') AND c.relpersistence = 'u'
UNION ALL
SELECT true, format('role %I may not make schemas: expected CREATE on the database', current_user) WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT true, format('role %I does not see standbys: expected pg_read_all_stats', current_user) WHERE NOT pg_has_role('pg_read_all_stats', 'usage')
UNION ALL
SELECT true, format('commits wait for standby %s, and would for ever: expected synchronous_standby_names without it, not %L', application_name, current_setting('synchronous_standby_names'))
  FROM pg_stat_replication WHERE application_name = $2 AND sync_state IN ('sync', 'quorum')
UNION ALL
SELECT false, format('prepared transaction %L of database %I would be on both hosts, with its locks, and keep vacuum from rows: end it before, or roll the copy back there afterwards', gid, database)
  FROM pg_prepared_xacts
UNION ALL
SELECT true, format('subscription %I would run on both hosts: expected none that is enabled', subname) FROM pg_subscription WHERE subenabled
UNION ALL
SELECT true, format('%s from %s to %s is under way: expected kiloshard move resume, or move abort',
    CASE count(*) WHEN 1 THEN format('the move of shard %s', min(shard)) ELSE format('a move of each of %s shards, such as %s,', count(*), min(shard)) END, source, target)
  FROM kiloshard.moves WHERE outcome IS NULL GROUP BY source, target
UNION ALL
SELECT true, format('%s old schemas of shards that have moved are there, and would be on both hosts: expected kiloshard move clean', count(*))
  FROM kiloshard.moves WHERE side = 'source' AND outcome = 'moved' HAVING count(*) > 0`

// standbyQuery finds why a standby cannot be promoted. Its parameter: a pattern of the schemas that get other names on it.
const standbyQuery = `
SELECT true, format('role %I may not promote it: expected a superuser, or GRANT EXECUTE ON FUNCTION pg_promote TO %1$I', current_user)
  WHERE NOT has_function_privilege('pg_promote(boolean, integer)', 'execute')
UNION ALL
SELECT true, 'its replay is paused: expected pg_wal_replay_resume()' WHERE pg_is_wal_replay_paused()
UNION ALL
SELECT true, 'it receives no WAL: expected a standby that streams' WHERE NOT EXISTS (SELECT FROM pg_stat_wal_receiver)
UNION ALL
SELECT true, format('role %I does not own schema %I: expected its owner, for the new name of the copy', current_user, nspname)
  FROM pg_namespace WHERE nspname ~ $1 AND NOT pg_has_role(nspowner, 'usage')
UNION ALL
SELECT false, format('it streams through slot %I, which keeps WAL on its primary afterwards: drop it there', slot_name) FROM pg_stat_wal_receiver WHERE slot_name <> ''`

// nameQuery returns the application_name with which a standby streams.
const nameQuery = `
SELECT coalesce((SELECT coalesce(substring(conninfo from '(?:^| )application_name=''?([^ '']+)'), substring(conninfo from 'fallback_application_name=''?([^ '']+)'))
  FROM pg_stat_wal_receiver), 'walreceiver')`

// Check finds why the standby cannot be promoted. The ledger of moves is on the source. follows reports that the target
// is a standby of the source, so that its lag can be measured.
func (s Standby) Check(ctx context.Context) (onSource, onTarget Found, follows bool, err error) {
	source, _, err := connect.Identity(ctx, s.Source)
	if err != nil {
		return onSource, onTarget, false, err
	}
	target, standby, err := connect.Identity(ctx, s.Target)
	if err != nil {
		return onSource, onTarget, false, err
	}
	name := ""
	switch {
	case source != target:
		onTarget.problem("it has the data of another server or database than %s: expected a physical standby of it", s.SourceName)
	case !standby:
		onTarget.problem("the server takes writes: expected a physical standby of %s", s.SourceName)
	default:
		if err := s.Target.QueryRow(ctx, nameQuery).Scan(&name); err != nil {
			return onSource, onTarget, false, err
		}
		if err := onTarget.query(ctx, s.Target, standbyQuery, s.Schemas); err != nil {
			return onSource, onTarget, false, err
		}
	}
	err = onSource.query(ctx, s.Source, primaryQuery, s.Leaving, name)
	return onSource, onTarget, len(onTarget.Problems) == 0, err
}

// Behind describes how far a standby lags, and why.
func (s Standby) Behind(ctx context.Context) string {
	var lsn string
	var bytes int64
	var receives, paused bool
	var readers string
	const query = `
		SELECT pg_wal_lsn_diff($1::text::pg_lsn, pg_last_wal_replay_lsn())::bigint, EXISTS (SELECT FROM pg_stat_wal_receiver), pg_is_wal_replay_paused(),
			(SELECT coalesce(string_agg(DISTINCT h.pid::text, ', '), '') FROM pg_stat_activity a JOIN pg_locks w ON w.pid = a.pid AND NOT w.granted
				JOIN pg_locks h ON h.granted AND h.database = w.database AND h.relation = w.relation WHERE a.backend_type = 'startup')`
	err := s.Source.QueryRow(ctx, `SELECT pg_current_wal_flush_lsn()::text`).Scan(&lsn)
	if err == nil {
		err = s.Target.QueryRow(ctx, query, lsn).Scan(&bytes, &receives, &paused, &readers)
	}
	if err != nil {
		return err.Error()
	}
	why := []string{fmt.Sprintf("it is %d bytes behind %s", bytes, s.SourceName)}
	if bytes <= 0 {
		why = []string{"it is as far as " + s.SourceName + ", so it seems to follow another server"}
	}
	if !receives {
		why = append(why, "receives no WAL")
	}
	if paused {
		why = append(why, "its replay is paused")
	}
	if readers != "" {
		why = append(why, "its replay waits for a lock that a reader there holds: process "+readers)
	}
	return strings.Join(why, ", ")
}
