package move

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// hide returns the statements that make the copy on the target a fence: a router with an old map is told that the shard is not there,
// next_id gives no values, and the other sequences are at their ends until [job.carry] sets them. One that cycles has no end.
func (m Move) hide() string {
	return fmt.Sprintf(`
SELECT setval(seqrelid::regclass, CASE WHEN seqincrement > 0 THEN seqmax ELSE seqmin END) FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid
WHERE c.relnamespace = '%[1]s'::regnamespace AND c.relname NOT IN ('next_id_seq', '%[2]s');
ALTER SEQUENCE %[1]s.next_id_seq RENAME TO %[2]s;
CREATE VIEW %[1]s.%[3]s AS SELECT source AS target, began AS fenced FROM kiloshard.moves WHERE id = '%[4]s';
`, m.Schema, sql.ArrivingSequence, sql.FenceMark, m.ID)
}

// show returns the statements that undo [Move.hide], if that is still to be done.
func (m Move) show() string {
	return fmt.Sprintf("ALTER SEQUENCE IF EXISTS %[1]s.%[2]s RENAME TO next_id_seq; DROP VIEW IF EXISTS %[1]s.%[3]s;\n", m.Schema, sql.ArrivingSequence, sql.FenceMark)
}

// prepareOpening shows the copy, or takes the fence down in front of the old schema of a rollback, in a transaction that is left open: its locks
// are there before anybody waits, whatever reads the sequence for long, such as pg_dump. The owners and grants are those of the source until then.
func (j *job) prepareOpening(ctx context.Context) (err error) {
	if j.opening == nil || j.opening.IsClosed() {
		if j.opening, err = session.Open(ctx, j.dst); err != nil {
			return err
		}
	}
	if err := session.Run(ctx, j.opening, "ROLLBACK"); err != nil {
		return err
	}
	if err := j.carryRights(ctx); err != nil {
		return err
	}
	show := "SET LOCAL synchronous_commit = off; " + j.show()
	if j.back != nil {
		if show, err = j.showBack(ctx); err != nil {
			return err
		}
	}
	if err := session.Run(ctx, j.opening, fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; ", j.cfg.LockTimeout.Milliseconds())+show); err != nil {
		return fmt.Errorf("opening the shard on %s: %w", j.Target, err)
	}
	return nil
}

// whileOpen shows the copy and calls try, which fences the source. If it fails, the copy is hidden again at once: whoever makes a slot on the
// target waits for its transactions.
func (j *job) whileOpen(ctx context.Context, try func() error) error {
	if err := j.prepareOpening(ctx); err != nil {
		return err
	}
	err := try()
	if err != nil {
		_ = session.Run(ctx, j.opening, "ROLLBACK") // the next try does so, too
	}
	return err
}

// openTarget has the target serve. The source is fenced. Nobody waits for the disk: a target that crashes and forgets it is opened again before
// the move goes on.
func (j *job) openTarget(ctx context.Context) error {
	script := "BEGIN; SET LOCAL synchronous_commit = off; " + j.show() + j.opens() + "COMMIT"
	if j.opening != nil { // all but the update is done there
		err := session.Run(ctx, j.opening, script)
		session.Close(ctx, j.opening)
		if j.opening = nil; err == nil {
			return nil
		}
	}
	return session.Run(ctx, j.to, script)
}

// opens returns the statement that notes that the host which the shard goes to takes writes, unless another mover takes the move back.
func (m Move) opens() string {
	return fmt.Sprintf(`
DO $kiloshard$ BEGIN
  UPDATE kiloshard.moves SET opened = coalesce(opened, clock_timestamp()) WHERE id = '%s' AND side = 'target' AND outcome IS NULL AND step <> '%s';
  IF NOT FOUND THEN RAISE 'another mover takes the move back: see kiloshard move status'; END IF;
END $kiloshard$;
`, m.ID, Aborting)
}

// keepClosed notes on that host that the move is taken back, unless it takes writes already.
func (j *job) keepClosed(ctx context.Context) error {
	if j.to == nil {
		return nil
	}
	const query = `UPDATE kiloshard.moves SET step = $2 WHERE id = $1 AND side = 'target' AND outcome IS NULL AND opened IS NULL`
	if _, err := j.to.Exec(ctx, query, j.ID, Aborting); err != nil {
		return err
	}
	open, err := j.isOpen(ctx)
	if err == nil && open {
		err = fmt.Errorf("%s takes writes already: expected move resume, and then a move back to %s", j.Target, j.Source)
	}
	return err
}

// isOpen reports whether that host takes writes already.
func (j *job) isOpen(ctx context.Context) (open bool, err error) {
	if j.back != nil && j.back.Outcome == Returned { // as an older release has noted it
		return true, nil
	}
	err = j.to.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND opened IS NOT NULL)`, j.ID).Scan(&open)
	return open, err
}

// settle returns when all that the target has committed is on its disk.
func (j *job) settle(ctx context.Context) error {
	return session.Run(ctx, j.to, "SELECT pg_logical_emit_message(true, 'kiloshard', 'moved')")
}
