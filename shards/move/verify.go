package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/promote"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// Verify compares the rows of moves whose movers have ended. The error wraps a [RowsError] or a [StructureError] for each shard
// that differs.
//
// Of a move that is under way and has come to the cutover it compares all rows, as of one moment, for which writers wait.
// After the switch, and until [Clean], it compares the rows that nobody has changed on the target since: each must be
// among those that the source had when it was fenced. Whether a row that is no longer on the target was deleted there, it cannot tell.
func Verify(ctx context.Context, cfg Config) (Report, error) {
	return onMoves(ctx, cfg, asked{of: []ledger.Outcome{ledger.UnderWay, ledger.Moved}, end: ledger.Cleaned}, func(ctx context.Context, j *job) error {
		switch {
		case j.Outcome == ledger.Moved && j.cfg.Map.Host(j.Shard).Name != j.Target: // it has moved on
			return nil
		case j.Outcome == ledger.Moved:
			return j.compareWithFenced(ctx)
		case j.Offline:
			return errors.New("nothing to compare: an offline move copies the shard again under its locks")
		case !slices.Contains([]ledger.Step{ledger.Copy, ledger.Cutover}, j.Step):
			return errors.New("nothing to compare: the move is at step " + string(j.Step))
		}
		_, err := j.compareAsOfOneMoment(ctx)
		return err
	}, func(*promote.Promotion, context.Context) error {
		return errors.New("nothing to compare: a promotion copies nothing")
	})
}

// verifyUnderFence compares all rows of a small shard, and of a large one those that were copied just now, and those that have
// changed since it was compared, if that is fast enough.
func (j *job) verifyUnderFence(ctx context.Context, tx pgx.Tx) error {
	if j.comparison.small {
		return j.compare(ctx, tx, j.to, rows.All, [2]string{})
	}
	if j.apart.unlogged {
		if err := j.compare(ctx, tx, j.to, rows.Unlogged, [2]string{}); err != nil {
			return err
		}
	}
	if !j.comparison.final {
		return nil
	}
	err := j.compare(ctx, tx, j.to, rows.Logged, j.comparison.seen)
	if differs := (*RowsError)(nil); errors.As(err, &differs) {
		return &lastPassError{differs}
	}
	return err
}

// lastPassError says that the rows which changed last differ. It may be wrong about rows that a transaction wrote in a savepoint that
// it had set before, so the mover compares all rows before it gives up.
type lastPassError struct{ *RowsError }

func (e *lastPassError) Unwrap() error { return e.RowsError }

// verifyBefore compares what can be compared while nobody waits: the structure, which a person may have changed, and
// the rows of a large shard: all, and then those that have changed since, until that is fast enough to be done once more while
// writers wait, or gets no faster.
func (j *job) verifyBefore(ctx context.Context) error {
	if err := j.measure(ctx); err != nil {
		return err
	}
	c := &j.comparison
	if c.small = j.bytes <= j.cfg.VerifyUnderFence; c.small {
		return j.verifyStructure(ctx)
	}
	took, err := j.compareAsOfOneMoment(ctx)
	if err != nil {
		return err
	}
	c.final = took <= j.cfg.VerifyPause
	for pass, inTime := 0, true; inTime && !c.final && pass < maxPasses; pass++ {
		limit := j.cfg.VerifyPause
		if took > longPass*limit && j.cfg.Rate == 0 {
			limit = took / 2
		}
		if time.Duration(c.rows)*passPerRow > limit {
			break
		}
		if took, inTime, err = j.pass(ctx, limit); err != nil {
			return err
		}
		c.final = inTime && took <= j.cfg.VerifyPause
	}
	if !c.final {
		j.eventf(progress.TooLarge, "too large to compare its last writes under the fence within %s: compared as of a moment ago", j.cfg.VerifyPause)
	}
	return j.catchUp(ctx)
}

// A pass compares the last changes of a large shard. One that takes longer than it may under the fence helps only after one that took longPass times as long,
// since which much has changed; with a rate the hosts are spared it. A pass reads all rows to find those that have changed, which takes passPerRow each at least:
// one that is sure to take too long is not begun.
const (
	longPass   = 20
	passPerRow = 50 * time.Nanosecond
)

// pass compares what has changed since all rows were compared, or since the pass before, and returns how long that took. It gives up
// after limit.
func (j *job) pass(ctx context.Context, limit time.Duration) (took time.Duration, inTime bool, err error) {
	source, target, err := j.snapshots(ctx)
	defer func() { session.Close(ctx, source, target) }()
	if err != nil {
		return 0, false, err
	}
	for _, conn := range []*pgx.Conn{source, target} {
		if err := session.Run(ctx, conn, fmt.Sprintf("SET LOCAL statement_timeout = %d", max(1, limit.Milliseconds()))); err != nil {
			return 0, false, err
		}
	}
	took, err = j.compareTimed(ctx, source, target, j.comparison.seen)
	switch {
	case session.Code(err) == "57014" && ctx.Err() == nil:
		return limit, false, nil
	case err != nil:
		return 0, false, err
	}
	j.eventf(progress.ComparedLast, "compared the last changes in %s", took.Round(time.Millisecond))
	return took, true, nil
}

// snapshots returns sessions in transactions that see the same rows on both sides.
func (j *job) snapshots(ctx context.Context) (source, target *pgx.Conn, err error) {
	if source, target, err = session.OpenBoth(ctx, j.src, j.dst); err != nil {
		return source, target, err
	}
	err = j.retry(ctx, func(ctx context.Context, lockTimeout time.Duration) error {
		return j.cutOnce(ctx, lockTimeout, locks.Tables(j.Schema, "SHARE"), func(ctx context.Context, _ pgx.Tx) error {
			for _, conn := range []*pgx.Conn{source, target} {
				const begin = "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1"
				if err := session.Run(ctx, conn, begin); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return source, target, err
}

// compareAsOfOneMoment compares structures and rows. Writers wait until the target has all that they have written and both sides have snapshots, and
// go on while these are compared. It returns how long that took.
func (j *job) compareAsOfOneMoment(ctx context.Context) (time.Duration, error) {
	source, target, err := j.snapshots(ctx)
	defer func() { session.Close(ctx, source, target) }()
	if err != nil {
		return 0, err
	}
	j.event(progress.Comparing)
	comparing, stop := context.WithCancel(ctx)
	defer stop()
	structures := make(chan error, 1)
	go func() { // in other sessions than the rows
		err := j.verifyStructure(ctx)
		if err != nil {
			stop()
		}
		structures <- err
	}()
	took, err := j.compareTimed(comparing, source, target, [2]string{})
	if differ := <-structures; differ != nil {
		return 0, differ
	}
	if err == nil {
		j.event(progress.Compared)
	}
	return took, err
}
