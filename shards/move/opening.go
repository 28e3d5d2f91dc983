package move

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
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

// openTarget makes the target serve. The source is fenced. It does not wait for the disk: a target that crashes and forgets it is opened again before
// the move goes on.
func (j *job) openTarget(ctx context.Context) error {
	script := "BEGIN; SET LOCAL synchronous_commit = off; " + fence.Show(j.Move) + fence.Open(j.Move) + "COMMIT"
	if j.opening != nil { // where all but the update is done
		err := session.Run(ctx, j.opening, script)
		session.Close(ctx, j.opening)
		if j.opening = nil; err == nil {
			return nil
		}
	}
	return session.Run(ctx, j.to, script)
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
