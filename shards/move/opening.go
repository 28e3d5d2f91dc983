package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// prepareOpening shows the copy, or takes the fence down in front of the old schema of a rollback, in a transaction that is left open: it has its locks
// before writers wait, although readers such as pg_dump may hold the sequence for long. The owners and grants are those of the source until then.
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
	show := "SET LOCAL synchronous_commit = off; " + fence.Show(j.Move)
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

// whileOpen shows the copy and calls try, which fences the source. If that fails, the copy is hidden again at once: a slot that is made on the
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

// endOpening runs statements at the end of the transaction that is open on the target, if one is, and reports whether they are known to be committed.
func (j *job) endOpening(ctx context.Context, statements string) (done bool) {
	if j.opening == nil {
		return false
	}
	if j.opening.PgConn().TxStatus() == 'T' { // it was not rolled back, as after an answer to the COMMIT of the fence that was lost
		done = session.Run(ctx, j.opening, statements) == nil
	}
	session.Close(ctx, j.opening)
	j.opening = nil
	return done
}

// held returns the sequences of the source as they were before its fence.
func (j *job) held(ctx context.Context) ([]fence.Sequence, error) {
	if j.sequences != nil {
		return j.sequences, nil
	}
	return fence.Held(ctx, j.from, j.Move)
}

// openTarget makes the target serve. The source is fenced. It does not wait for the disk: a target that crashes and forgets it is opened again before
// the move goes on.
func (j *job) openTarget(ctx context.Context) error {
	if j.endOpening(ctx, fence.Open(j.Move)+"COMMIT") {
		return nil
	}
	held, err := j.held(ctx)
	if err != nil {
		return err
	}
	return session.InTx(ctx, j.to, func(pgx.Tx) error {
		// This waits for the transaction that a mover which was killed may have left.
		if err := session.Run(ctx, j.to, "SET LOCAL synchronous_commit = off; "+fence.Show(j.Move)); err != nil {
			return err
		}
		if open, err := fence.IsOpen(ctx, j.to, j.Move); err != nil || open { // then its sequences may have moved on
			return err
		}
		return session.Run(ctx, j.to, fence.Carry(j.Schema, held)+fence.Open(j.Move))
	})
}

// showBack returns the statements that take down the fence of the move that is rolled back, and drop it, unless that would drop
// something else.
func (j *job) showBack(ctx context.Context) (string, error) {
	if err := structure.NothingOutside(ctx, j.to, j.Move); err != nil {
		return "", err
	}
	// [job.carryRights] has made the grants of today. The transaction of the statements stays open, and must not lock the row.
	if _, err := j.to.Exec(ctx, `UPDATE kiloshard.moves SET grants = NULL WHERE id = $1`, j.back.ID); err != nil {
		return "", err
	}
	return fence.Only(j.Schema) + fence.Lower(*j.back) + "DROP SCHEMA " + j.back.FenceSchema() + " CASCADE;\n", nil
}

// reopen makes the old host take writes again, in one transaction: the fence of the move that is rolled back comes down, the sequences go on
// from where they are behind the fence of the host that the shard leaves, and its ledger says so.
func (j *job) reopen(ctx context.Context) error {
	if j.back.Outcome == ledger.Returned {
		return nil
	}
	held, err := j.held(ctx)
	if err != nil {
		return err
	}
	end := fence.Set(j.Schema, held) + fence.Open(j.Move) + fmt.Sprintf("UPDATE kiloshard.moves SET outcome = '%s', stepped = clock_timestamp() WHERE id = '%s'; COMMIT", ledger.Returned, j.back.ID)
	done := j.endOpening(ctx, end)
	if !done { // unless the answer to its COMMIT was lost
		if err := j.readReturned(ctx); err != nil {
			return err
		}
		done = j.back.Outcome == ledger.Returned
	}
	if !done {
		show, err := j.showBack(ctx)
		if err == nil {
			err = session.Run(ctx, j.to, "BEGIN;\n"+show+end)
		}
		if err != nil {
			return fmt.Errorf("taking the fence down on %s: %w", j.Target, err)
		}
	}
	j.back.Outcome = ledger.Returned
	j.event(progress.Reopened)
	return nil
}

// keepClosed notes on the target that the move is taken back. The error says that the target takes writes already.
func (j *job) keepClosed(ctx context.Context) error {
	if j.to == nil {
		return nil
	}
	if err := fence.KeepClosed(ctx, j.to, j.Move); err != nil {
		return err
	}
	open, err := fence.IsOpen(ctx, j.to, j.Move)
	if err == nil && open {
		err = fmt.Errorf("%s takes writes already: expected move resume, and then a move back to %s", j.Target, j.Source)
	}
	return err
}
