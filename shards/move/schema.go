package move

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/sql"
)

// createWait is how long a move waits for a kiloshard create on its target.
const createWait = time.Minute

// StructureError says that the shard on the target is not what it is on the source.
type StructureError struct {
	Differences []string // "- …" for what only the source has, "+ …" for what only the target has
}

// Error names the first difference.
func (e *StructureError) Error() string {
	text := "the shard's structure on the target differs from the source's: " + e.Differences[0]
	if more := len(e.Differences) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more differences", more)
	}
	return text
}

// next returns the map that follows the move.
func (j *job) next() (*shards.Map, error) {
	c := j.cfg.Map.Config()
	c.Placement = placement(j.cfg.Map, j.numbers(), j.Target)
	m, err := c.Map()
	if err != nil {
		return nil, err
	}
	return m, nil
}

// makeSchema makes the shard on the target as it is on the source, without rows. What an earlier attempt made of it is
// dropped first: the target's ledger says that it is this move's.
func (j *job) makeSchema(ctx context.Context) error {
	if err := j.dropTarget(ctx); err != nil {
		return err
	}
	m, err := j.next()
	if err != nil {
		return err
	}
	if err := provision.CreateOne(ctx, m, j.Shard, createWait); err != nil {
		return err
	}
	if j.statements == (snapshot.Statements{}) {
		if err := j.readStatements(ctx); err != nil {
			return err
		}
	}
	script, err := j.shardScript(ctx)
	if err != nil {
		return err
	}
	later := j.statements.Keys
	if j.Offline { // the copy may be tried several times
		script, later = script+later, ""
	}
	err = session.InTx(ctx, j.to, func(to pgx.Tx) error {
		// Rows that were made with the shard come with the copy.
		if err := session.Run(ctx, to.Conn(), script+truncateAll(j.Schema, rows.All)+j.guardAll()+j.hide()); err != nil {
			return err
		}
		_, err := to.Exec(ctx, `UPDATE kiloshard.moves SET keys = nullif($2, '') WHERE id = $1`, j.ID, later)
		return err
	})
	if err != nil {
		return fmt.Errorf("making the shard on %s: %w", j.Target, err)
	}
	j.event("made")
	if err := j.carryRights(ctx); err != nil { // default grants of the target's database have given others
		return err
	}
	return j.copyLedger(ctx)
}

// trySchema makes the shard on the target, and takes it back.
func (j *job) trySchema(ctx context.Context) error {
	m, err := j.next()
	if err != nil {
		return err
	}
	script, err := j.shardScript(ctx)
	if err != nil {
		return err
	}
	return provision.TryOne(ctx, m, j.Shard, createWait, script+j.statements.Keys)
}

// makeKeys makes the keys and indexes that the shard gets once it has its rows. An older version has made them before.
func (j *job) makeKeys(ctx context.Context, to pgx.Tx) error {
	var keys string
	const query = `SELECT set_config('search_path', 'pg_catalog', true), coalesce(keys, '') FROM kiloshard.moves WHERE id = $1`
	if err := to.QueryRow(ctx, query, j.ID).Scan(nil, &keys); err != nil || keys == "" {
		return err
	}
	if err := session.Run(ctx, to.Conn(), keys); err != nil {
		return err
	}
	_, err := to.Exec(ctx, `UPDATE kiloshard.moves SET keys = NULL WHERE id = $1`, j.ID)
	return err
}

// shardScript returns what makes of a new shard's schema the one that the source has, but for keys and indexes, in a transaction.
func (j *job) shardScript(ctx context.Context) (string, error) {
	version, err := j.schemaVersion(ctx)
	if err != nil {
		return "", err
	}
	rights, err := rights(ctx, j.from, j.Schema, j.Schema)
	return "SET LOCAL search_path = pg_catalog; SET LOCAL check_function_bodies = off;\n" + version + j.statements.Tables + strings.Join(rights, ";\n") + ";\n", err
}

// readStatements reads the shard on the source. The error is a [snapshot.UnknownError] for what no statement makes.
func (j *job) readStatements(ctx context.Context) error {
	conn, err := drift.Connect(ctx, j.src)
	if err != nil {
		return err
	}
	defer session.Close(ctx, conn)
	j.statements, err = snapshot.Exact(ctx, conn, j.cfg.Map, j.Shard)
	return err
}

// schemaVersion returns the statement that makes tern's version table, if the source has one.
func (j *job) schemaVersion(ctx context.Context) (string, error) {
	var there bool
	err := j.from.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, j.Schema+".schema_version").Scan(&there)
	if err != nil || !there {
		return "", err
	}
	return "CREATE TABLE IF NOT EXISTS " + j.Schema + ".schema_version (version int4 NOT NULL PRIMARY KEY);\n", nil
}

// truncateAll returns a statement that empties tables of a schema, if one has rows: all, since Postgres empties no table without those that refer to it.
func truncateAll(schema string, which rows.Tables) string {
	return fmt.Sprintf(`DO $kiloshard$ DECLARE t text; BEGIN
  SELECT string_agg('ONLY ' || c.oid::regclass, ', ') INTO t FROM pg_class c WHERE c.relnamespace = '%s'::regnamespace AND c.relkind = 'r' AND position(c.relpersistence IN '%s') > 0
    HAVING bool_or(pg_relation_size(c.oid) > 0);
  IF t IS NOT NULL THEN EXECUTE 'TRUNCATE ' || t; END IF;
END $kiloshard$;
`, schema, which)
}

// dropTarget drops what this move has made of the shard on the target, and the fence of an earlier move away from there.
func (j *job) dropTarget(ctx context.Context) error {
	var ours, fence, there bool
	query := `
		SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND outcome IS NULL),
			` + sql.IsOldFence("$2::text") + `, to_regnamespace($2) IS NOT NULL`
	if err := j.to.QueryRow(ctx, query, j.ID, j.Schema).Scan(&ours, &fence, &there); err != nil || !there {
		return err
	}
	if !ours && !fence {
		return fmt.Errorf("schema %s is on %s already: expected none, or drop it there once no row is only in it", j.Schema, j.Target)
	}
	if fence {
		if err := j.nothingOutside(ctx); err != nil {
			return err
		}
		return session.Run(ctx, j.to, dropFence(j.Schema))
	}
	return session.Run(ctx, j.to, "DROP SCHEMA "+j.Schema+" CASCADE")
}

// nothingOutside returns an error if something outside the fence of an earlier move, on the target, refers to it: that would be dropped, too.
func (j *job) nothingOutside(ctx context.Context) error {
	outside, err := checks.Outside(ctx, j.to, j.Schema)
	if err == nil && len(outside) > 0 {
		err = fmt.Errorf("%s, which takes the place of the shard on %s: expected nothing outside to refer to it", strings.Join(outside, "; "), j.Target)
	}
	return err
}

// copyLedger copies what the ledger of migrations knows of the shard, so that the target can tell which files it has run.
func (j *job) copyLedger(ctx context.Context) error {
	const there = `SELECT to_regclass('kiloshard.ledger') IS NOT NULL`
	var has bool
	if err := j.from.QueryRow(ctx, there).Scan(&has); err != nil || !has {
		return err
	}
	if err := j.to.QueryRow(ctx, there).Scan(&has); err != nil {
		return err
	}
	if !has {
		if err := session.Run(ctx, j.to, "BEGIN;\n"+sql.Ledger()+"COMMIT"); err != nil {
			return err
		}
	}
	rows, err := j.from.Query(ctx, `SELECT to_jsonb(l) - 'entry' FROM kiloshard.ledger l WHERE shard = $1 AND current ORDER BY entry`, j.Shard)
	if err != nil {
		return err
	}
	entries, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	const columns = `run, who, role, shard, version, file, direction, checksum, began, took, current, sqlstate, error, statement`
	const query = `
		WITH old AS (UPDATE kiloshard.ledger SET current = false WHERE shard = $1 AND current)
		INSERT INTO kiloshard.ledger (` + columns + `)
		SELECT ` + columns + ` FROM unnest($2::jsonb[]) e (e), jsonb_populate_record(NULL::kiloshard.ledger, e)`
	_, err = j.to.Exec(ctx, query, j.Shard, entries)
	return err
}
