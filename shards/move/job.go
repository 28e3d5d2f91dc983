package move

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// ErrUnderWay says that the ledger has a move of the shard that has not ended: it is to be resumed or aborted first.
var ErrUnderWay = errors.New("a move of the shard is under way")

// job is one shard's move while this program works on it. Each of its sessions is used by one goroutine at a time.
type job struct {
	Move
	cfg        Config
	src, dst   shards.Host
	from, to   *pgx.Conn // they hold the shard's advisory lock; to is nil if the target is gone
	cut        *pgx.Conn // to the source, for tries of a cutover; nil before the first
	opening    *pgx.Conn // to the target, in the transaction that has it serve; nil before a cutover and after it
	bytes      int64     // of the shard's tables
	rows       int64     // of them, as they were compared last
	small      bool      // it is compared while writers wait
	apart      apart
	final      bool                // what has changed since seen is
	carried    string              // the snapshot of the target when it had all
	seen       [2]string           // the snapshots of source and target as of which the rows are known to be the same
	compared   catalogs            // as they were when both structures were compared
	again      int                 // how often they were compared once more
	tried      time.Time           // when the first try of a cutover began
	entered    bool                // it is in the ledger
	statements snapshot.Statements // that make the shard, without rows; empty before they are read
	back       *Move               // the move that this one rolls back: its old schema is brought up to date instead of a copy
	mapped     *shards.Map         // as it was before the fence; nil for a move that was fenced by another mover
	release    func()              // of [Config.Hold]; nil while that is not in force
	turns      []*pgx.Conn         // that hold the turn of a cutover
	leaving    shards.Set          // the shards of a promotion, which change their host together; empty for a move
}

// newID returns 8 hexadecimal digits.
func newID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// begin opens the sessions of a move and takes the shard's lock on both hosts. The job is to be closed in any case.
func begin(ctx context.Context, cfg Config, m Move) (*job, error) {
	j := &job{Move: m, cfg: cfg}
	var err error
	if j.src, err = cfg.host(m.Source); err != nil {
		return j, err
	}
	if j.dst, err = cfg.host(m.Target); err != nil {
		return j, err
	}
	if cfg.withoutTarget {
		j.from, err = session.Open(ctx, j.src)
	} else {
		j.from, j.to, err = session.OpenBoth(ctx, j.src, j.dst)
	}
	if err != nil {
		return j, err
	}
	for _, side := range []struct {
		host shards.Host
		conn *pgx.Conn
	}{{j.src, j.from}, {j.dst, j.to}} {
		if side.conn == nil {
			continue
		}
		if err = lockShard(ctx, side.conn, m.turn()); err == nil {
			err = install(ctx, side.conn)
		}
		if err != nil {
			return j, &shards.HostError{Host: side.host.Name, Err: err}
		}
	}
	if err := j.limitLockTimeout(ctx); err != nil {
		return j, &shards.HostError{Host: m.Source, Err: err}
	}
	if m.Returns != "" && j.to != nil {
		err = j.readReturned(ctx)
	}
	return j, err
}

// limitLockTimeout has a cutover wait for locks for a shorter time than after which a caller that it waits for, and that waits for it, would
// be ended as one of a deadlock.
func (j *job) limitLockTimeout(ctx context.Context) error {
	var limit float64
	err := j.from.QueryRow(ctx, `SELECT 0.9 * setting::float8 FROM pg_settings WHERE name = 'deadlock_timeout'`).Scan(&limit)
	if err == nil {
		j.cfg.LockTimeout = min(j.cfg.LockTimeout, max(time.Millisecond, time.Duration(limit*float64(time.Millisecond))))
	}
	return err
}

func (j *job) close(ctx context.Context) {
	j.letGo()
	session.Close(ctx, j.from, j.to, j.cut, j.opening)
}

func (j *job) event(what string, args ...any) {
	j.tell(Event{What: fmt.Sprintf(what, args...)})
}

func (j *job) tell(e Event) {
	if j.cfg.Events != nil {
		e.Shard, e.Split, e.From, e.To, e.Step = j.Shard, j.leaving, j.Source, j.Target, j.Step
		j.cfg.Events(e)
	}
}

// advance takes a move from the step that it is in to its end. From the fence until the map has changed nobody is served, so
// an interrupt has to wait.
func (j *job) advance(ctx context.Context) error {
	for {
		working := ctx
		if j.Step == Fenced {
			j.hold()
			working = context.WithoutCancel(ctx)
		}
		next, err := j.do(working)
		if next == Fenced {
			working = context.WithoutCancel(ctx)
		} else {
			j.letGo()
		}
		switch {
		case err != nil:
			return j.noted(ctx, err)
		case next == Finished:
			return j.finish(ctx)
		}
		if next == Fenced { // the fence's own transaction has written it
			j.Step = next
			j.event("begun")
			continue
		}
		if err := j.setStep(working, next); err != nil {
			return err
		}
	}
}

// do does what the step says, and returns the step that follows. What a killed mover left of the step is no hindrance.
func (j *job) do(ctx context.Context) (Step, error) {
	switch j.Step {
	case Prepare:
		if j.back != nil {
			return Copy, j.enter(ctx, j.to, targetSide)
		}
		return Schema, j.enter(ctx, j.to, targetSide)
	case Schema:
		if j.Offline {
			return Cutover, j.makeSchema(ctx)
		}
		return Publish, j.makeSchema(ctx)
	case Publish:
		return Copy, j.publish(ctx)
	case Copy:
		return Cutover, j.copy(ctx)
	case Cutover:
		cut := j.cutover
		if j.Offline {
			cut = j.cutoverOffline
		}
		err := cut(ctx)
		if err != nil && j.isFenced(ctx) { // the answer to its COMMIT was lost
			err = nil
		}
		return Fenced, err
	case Fenced:
		defer j.endTurn(ctx)
		if down, err := j.unlessAsFenced(ctx); err != nil || down {
			return Cutover, err
		}
		if j.back != nil {
			if err := j.reopen(ctx); err != nil {
				return "", err
			}
		} else if err := j.openTarget(ctx); err != nil {
			return "", err
		}
		if err := j.switchMap(ctx); err != nil {
			return "", err
		}
		return Switched, j.settle(ctx)
	case Switched:
		if err := j.noteLate(ctx); err != nil {
			return "", err
		}
		if j.Offline { // the others have done it before their cutover
			j.analyze(ctx)
		}
		return Finished, j.cleanUp(ctx)
	}
	return "", fmt.Errorf("the move is at step %q, which cannot be continued; see kiloshard move abort", j.Step)
}

// finish ends the move in both ledgers, the target's first: the source's is the one that is looked at.
func (j *job) finish(ctx context.Context) error {
	if err := j.removeGuards(ctx); err != nil {
		return j.noted(ctx, err)
	}
	if err := j.setOutcome(ctx, j.to, Moved); err != nil {
		return err
	}
	if err := j.setOutcome(ctx, j.from, Moved); err != nil {
		return err
	}
	j.Step, j.Outcome = Finished, Moved
	j.event("done")
	return nil
}
