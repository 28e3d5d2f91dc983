package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/hold"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/placing"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// job is one shard's move while this program works on it. Each of its sessions is used by one goroutine at a time.
type job struct {
	ledger.Move

	cfg      Config
	src, dst shards.Host
	from, to *pgx.Conn // they hold the shard's advisory lock; to is nil if the target is gone
	cut      *pgx.Conn // to the source, for tries of a cutover; nil before the first
	opening  *pgx.Conn // to the target, in the transaction that opens the shard there; nil before a cutover and after it

	back       *ledger.Move        // the move that this one rolls back: its old schema is brought up to date instead of a copy
	statements snapshot.Statements // that make the shard, without rows; empty before they are read
	bytes      int64               // of the shard's tables
	apart      apart
	comparison comparison
	carried    string           // the snapshot of the target when it had all rows
	sequences  []fence.Sequence // as they were before this mover's fence; nil before that, and of a fence of another mover
	mapped     *shards.Map      // as it was before the fence; nil for a move that was fenced by another mover
	tried      time.Time        // when the first try of a cutover began
	entered    bool             // the ledger has the move
	turn       locks.Turn
	hold       hold.Hold
}

// apart is what of a shard is not replicated, and is copied while callers wait.
type apart struct {
	unlogged bool   // it has unlogged tables
	large    string // the query of [large.Columns]
}

// comparison has the results of the last comparisons of the two sides.
type comparison struct {
	catalogs structure.Catalogs // of the source, when the structures were compared
	again    int                // how often the structures were compared once more
	seen     [2]string          // the snapshots of source and target as of which the rows are known to be the same
	rows     int64              // in the tables that were compared last
	small    bool               // all rows are compared while writers wait
	final    bool               // the rows that have changed since seen are compared while writers wait
}

// begin opens the sessions of a move and takes the shard's lock on both hosts. The caller closes the job also after an error.
func begin(ctx context.Context, cfg Config, m ledger.Move) (*job, error) {
	j := &job{Move: m, cfg: cfg, hold: hold.Hold{Begin: cfg.Hold}}
	var err error
	if j.src, err = hosts.Host(cfg.Map, m.Source); err != nil {
		return j, err
	}
	if j.dst, err = hosts.Host(cfg.Map, m.Target); err != nil {
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
		if err = claim.Lock(ctx, side.conn, m.Turn()); err == nil {
			err = ledger.Install(ctx, side.conn)
		}
		if err != nil {
			return j, &shards.HostError{Host: side.host.Name, Err: err}
		}
	}
	if j.cfg.LockTimeout, err = locks.BelowDeadlock(ctx, j.from, j.cfg.LockTimeout); err != nil {
		return j, &shards.HostError{Host: m.Source, Err: err}
	}
	if m.Returns != "" && j.to != nil {
		err = j.readReturned(ctx)
	}
	return j, err
}

func (j *job) close(ctx context.Context) {
	j.hold.Release()
	session.Close(ctx, j.from, j.to, j.cut, j.opening)
}

// event reports an event whose text is its kind.
func (j *job) event(kind progress.Kind) { j.report(progress.Event{Kind: kind, What: string(kind)}) }

// eventf reports an event with a text.
func (j *job) eventf(kind progress.Kind, format string, args ...any) {
	j.report(progress.Event{Kind: kind, What: fmt.Sprintf(format, args...)})
}

func (j *job) report(e progress.Event) {
	if j.cfg.Events != nil {
		e.Shard, e.From, e.To, e.Step = j.Shard, j.Source, j.Target, j.Step
		j.cfg.Events(e)
	}
}

// released reports how long writers have waited.
func (j *job) released(after time.Duration) {
	j.report(progress.Event{Kind: progress.Released, What: fmt.Sprintf("released after %s", after), Waited: after})
}

func (j *job) note(format string, args ...any) {
	j.eventf(progress.Note, "note: "+format, args...)
}

func (j *job) waits(format string, args ...any) {
	j.eventf(progress.Waiting, format, args...)
}

// limits are those of waits for others.
func (j *job) limits() wait.Limits {
	return wait.Limits{Lock: j.cfg.LockTimeout, Retry: j.cfg.RetryLimit, Report: j.waits}
}

// stream is the replication from the source to the target.
func (j *job) stream() replicate.Stream {
	return replicate.Stream{
		Move: j.Move, SourceHost: j.src, TargetHost: j.dst, From: j.from, To: j.to, Limits: j.limits(),
		Login: replicate.Login{Settings: j.cfg.Login, WithPassword: j.cfg.LoginWithPassword},
	}
}

// change is the change of the map that the move ends with.
func (j *job) change() placing.Change {
	return placing.Change{
		Store: j.cfg.Store, By: j.cfg.By, Shards: shards.SetOf(j.Shard), Source: j.Source, Target: j.Target,
		Waits: j.waits, Failed: func(err error) { j.eventf(progress.StoreFailed, "%v", err) },
	}
}

// copyOf copies rows at the rate of the config.
func (j *job) copyOf(ctx context.Context) rows.Copy {
	return rows.Copy{Schema: j.Schema, Source: j.Source, Target: j.Target, Limit: rows.Limit(ctx, j.cfg.Rate)}
}

// copied is the schema on the target that the rows come to.
func (j *job) copied() string {
	if j.back != nil {
		return j.back.OldSchema()
	}
	return j.Schema
}

// readReturned reads the move that this one rolls back, from the ledger of the host that the shard comes back to.
func (j *job) readReturned(ctx context.Context) error {
	j.back = &ledger.Move{ID: j.Returns, Shard: j.Shard, Schema: j.Schema, Source: j.Target, Target: j.Source}
	if err := j.back.Reread(ctx, j.to); err != nil {
		return fmt.Errorf("move %s on %s, which is to be rolled back: %w", j.Returns, j.Target, err)
	}
	return nil
}
