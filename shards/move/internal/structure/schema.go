// Package structure makes a shard on the target as it is on the source, and compares the two.
package structure

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
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/sql"
)

// Make makes a shard that was just created on the target, and is hidden by [fence.Hide], as it is on the source, without rows, in one transaction. The target's ledger keeps the statements
// that make keys and indexes, for [MakeKeys].
func Make(ctx context.Context, target *pgx.Conn, m ledger.Move, script, keys string) error {
	err := session.InTx(ctx, target, func(tx pgx.Tx) error {
		// Rows that were made with the shard come with the copy.
		if err := session.Run(ctx, tx.Conn(), fence.Show(m)+script+rows.Truncate(m.Schema, rows.All)+fence.Guard(m)+fence.Hide(m)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE kiloshard.moves SET keys = nullif($2, '') WHERE id = $1`, m.ID, keys)
		return err
	})
	if err != nil {
		return fmt.Errorf("making the shard on %s: %w", m.Target, err)
	}
	return nil
}

// afterFence is how long after a shard has left a host a copy of it may arrive there: a few times as long as a router's session that does not
// know of it may go on to read tables of its name.
const afterFence = 3 * time.Second

// AwaitForgotten waits for that. A router that has just seen that the shard is not there does not find the tables that [Make] makes.
func AwaitForgotten(ctx context.Context, target *pgx.Conn, m ledger.Move) error {
	var left float64
	const query = `SELECT coalesce(extract(epoch FROM max(fenced) - clock_timestamp()), -1e6)::float8 FROM kiloshard.moves WHERE shard = $1 AND side = 'source'`
	if err := target.QueryRow(ctx, query, m.Shard).Scan(&left); err != nil {
		return err
	}
	return wait.Sleep(ctx, min(afterFence, afterFence+time.Duration(left*float64(time.Second))))
}

// MakeKeys makes the keys and indexes that the shard gets after its rows, unless it has them.
func MakeKeys(ctx context.Context, to pgx.Tx, m ledger.Move) error {
	var keys string
	const query = `SELECT set_config('search_path', 'pg_catalog', true), coalesce(keys, '') FROM kiloshard.moves WHERE id = $1`
	if err := to.QueryRow(ctx, query, m.ID).Scan(nil, &keys); err != nil || keys == "" {
		return err
	}
	if err := session.Run(ctx, to.Conn(), keys); err != nil {
		return err
	}
	_, err := to.Exec(ctx, `UPDATE kiloshard.moves SET keys = NULL WHERE id = $1`, m.ID)
	return err
}

// Script returns the statements that turn a new shard's schema into that of the source, except keys and indexes, in a transaction. tables are those of
// [snapshot.Statements].
func Script(ctx context.Context, source *pgx.Conn, m ledger.Move, tables string) (string, error) {
	version, err := schemaVersion(ctx, source, m.Schema)
	if err != nil {
		return "", err
	}
	rights, err := rights(ctx, source, m.Schema, m.Schema)
	return "SET LOCAL search_path = pg_catalog; SET LOCAL check_function_bodies = off;\n" + version + tables + strings.Join(rights, ";\n") + ";\n", err
}

// Read reads the statements that make a shard, on a host. The error is a [snapshot.UnknownError] for what no statement makes.
func Read(ctx context.Context, host shards.Host, m *shards.Map, n shards.Number) (snapshot.Statements, error) {
	conn, err := drift.Connect(ctx, host)
	if err != nil {
		return snapshot.Statements{}, err
	}
	defer session.Close(ctx, conn)
	return snapshot.Exact(ctx, conn, m, n)
}

// schemaVersion returns the statement that makes tern's version table, if the source has one.
func schemaVersion(ctx context.Context, source *pgx.Conn, schema string) (string, error) {
	var there bool
	err := source.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, schema+".schema_version").Scan(&there)
	if err != nil || !there {
		return "", err
	}
	return "CREATE TABLE IF NOT EXISTS " + schema + ".schema_version (version int4 NOT NULL PRIMARY KEY);\n", nil
}

// DropTarget drops what an earlier attempt of the move has made of the shard on the target, and the fence of an earlier move away from there.
func DropTarget(ctx context.Context, target *pgx.Conn, m ledger.Move) error {
	var ours, fenced, there bool
	query := `
		SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND outcome IS NULL),
			` + sql.IsOldFence("$2::text") + `, to_regnamespace($2) IS NOT NULL`
	if err := target.QueryRow(ctx, query, m.ID, m.Schema).Scan(&ours, &fenced, &there); err != nil || !there {
		return err
	}
	if !ours && !fenced {
		return fmt.Errorf("schema %s is on %s already: expected none, or drop it there once no row is only in it", m.Schema, m.Target)
	}
	if fenced {
		if err := NothingOutside(ctx, target, m); err != nil {
			return err
		}
		return session.Run(ctx, target, fence.Drop(m.Schema))
	}
	return session.Run(ctx, target, "DROP SCHEMA "+m.Schema+" CASCADE")
}

// NothingOutside returns an error if something outside the fence of an earlier move, on the target, refers to the fence: it would be dropped, too.
func NothingOutside(ctx context.Context, target *pgx.Conn, m ledger.Move) error {
	outside, err := checks.Outside(ctx, target, m.Schema)
	if err == nil && len(outside) > 0 {
		err = fmt.Errorf("%s, which takes the place of the shard on %s: expected nothing outside to refer to it", strings.Join(outside, "; "), m.Target)
	}
	return err
}

// CopyLedger copies the current rows of the shard in the ledger of migrations, so that the target's ledger has the files that were run.
func CopyLedger(ctx context.Context, source, target *pgx.Conn, n shards.Number) error {
	const there = `SELECT to_regclass('kiloshard.ledger') IS NOT NULL`
	var has bool
	if err := source.QueryRow(ctx, there).Scan(&has); err != nil || !has {
		return err
	}
	if err := target.QueryRow(ctx, there).Scan(&has); err != nil {
		return err
	}
	if !has {
		if err := session.Run(ctx, target, "BEGIN;\n"+sql.Ledger()+"COMMIT"); err != nil {
			return err
		}
	}
	found, err := source.Query(ctx, `SELECT to_jsonb(l) - 'entry' FROM kiloshard.ledger l WHERE shard = $1 AND current ORDER BY entry`, n)
	if err != nil {
		return err
	}
	entries, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return err
	}
	const columns = `run, who, role, shard, version, file, direction, checksum, began, took, current, sqlstate, error, statement`
	const query = `
		WITH old AS (UPDATE kiloshard.ledger SET current = false WHERE shard = $1 AND current)
		INSERT INTO kiloshard.ledger (` + columns + `)
		SELECT ` + columns + ` FROM unnest($2::jsonb[]) e (e), jsonb_populate_record(NULL::kiloshard.ledger, e)`
	_, err = target.Exec(ctx, query, n, entries)
	return err
}
