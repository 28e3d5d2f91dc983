package fence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/sql"
)

// Hide returns the statements that make the copy on the target a fence: a router with an old map reads that the shard is not there, next_id fails, and
// the other sequences are exhausted until [Carry] sets them, unless they cycle.
func Hide(m ledger.Move) string {
	return fmt.Sprintf(`
SELECT setval(seqrelid::regclass, CASE WHEN seqincrement > 0 THEN seqmax ELSE seqmin END) FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid
WHERE c.relnamespace = '%[1]s'::regnamespace AND c.relname NOT IN ('next_id_seq', '%[2]s');
ALTER SEQUENCE %[1]s.next_id_seq RENAME TO %[2]s;
CREATE VIEW %[1]s.%[3]s AS SELECT source AS target, began AS fenced FROM kiloshard.moves WHERE id = '%[4]s';
`, m.Schema, sql.ArrivingSequence, sql.FenceMark, m.ID)
}

// Show returns the statements that undo [Hide], unless that is done already.
func Show(m ledger.Move) string {
	return fmt.Sprintf("ALTER SEQUENCE IF EXISTS %[1]s.%[2]s RENAME TO next_id_seq; DROP VIEW IF EXISTS %[1]s.%[3]s;\n", m.Schema, sql.ArrivingSequence, sql.FenceMark)
}

// Open returns the statement that notes in the target's ledger that the target takes writes. It fails if another mover takes the move back.
func Open(m ledger.Move) string {
	return fmt.Sprintf(`
DO $kiloshard$ BEGIN
  UPDATE kiloshard.moves SET opened = coalesce(opened, clock_timestamp()) WHERE id = '%s' AND side = 'target' AND outcome IS NULL AND step <> '%s';
  IF NOT FOUND THEN RAISE 'another mover takes the move back: see kiloshard move status'; END IF;
END $kiloshard$;
`, m.ID, ledger.Aborting)
}

// IsOpen reports whether the target takes writes already.
func IsOpen(ctx context.Context, target *pgx.Conn, m ledger.Move) (open bool, err error) {
	err = target.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND opened IS NOT NULL)`, m.ID).Scan(&open)
	return open, err
}

// KeepClosed notes in the target's ledger that the move is taken back, unless the target takes writes already: see [IsOpen].
func KeepClosed(ctx context.Context, target *pgx.Conn, m ledger.Move) error {
	const query = `UPDATE kiloshard.moves SET step = $2 WHERE id = $1 AND side = 'target' AND outcome IS NULL AND opened IS NULL`
	_, err := target.Exec(ctx, query, m.ID, ledger.Aborting)
	return err
}
