package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/retry"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

var (
	errStandbyLate = errors.New("the standby has not replayed the fences")
	errNoStandby   = errors.New("it is no standby any more: somebody else has promoted it")
)

// fencesAtOnce is how many shards one transaction fences, or takes the fences of down: it locks each of their tables and sequences.
const fencesAtOnce = 32

// inParts runs the statements of some moves, a transaction for each part of them.
func (p *Promotion) inParts(ctx context.Context, conn *pgx.Conn, settings string, statements func(ledger.Move) string) error {
	for part := range slices.Chunk(p.moves, fencesAtOnce) {
		script := "BEGIN; " + settings
		for _, m := range part {
			script += statements(m)
		}
		if err := session.Run(ctx, conn, script+"COMMIT"); err != nil {
			return err
		}
	}
	return nil
}

// lower takes down, on a host, the fences that are up there, and writes a step.
func (p *Promotion) lower(ctx context.Context, conn *pgx.Conn, step ledger.Step) error {
	return p.inParts(ctx, conn, "", func(m ledger.Move) string {
		return fmt.Sprintf("SELECT kiloshard.unfence(id, schema) FROM kiloshard.moves WHERE id = '%[1]s' AND outcome IS NULL AND fenced IS NOT NULL;\n"+
			"UPDATE kiloshard.moves SET step = '%[2]s', fenced = NULL WHERE id = '%[1]s' AND outcome IS NULL AND fenced IS NOT NULL;\n", m.ID, step)
	})
}

// unfenceAll takes the fences on the source down.
func (p *Promotion) unfenceAll(ctx context.Context, step ledger.Step) error {
	if err := p.connectSource(ctx); err != nil {
		return err
	}
	if err := p.lower(ctx, p.from, step); err != nil {
		return fmt.Errorf("taking the fences down on %s: %w", p.Source, err)
	}
	p.hold.Release()
	p.event(progress.Unfenced)
	return nil
}

// cutover tries until all shards are fenced, and the standby knows that.
func (p *Promotion) cutover(ctx context.Context) error {
	// Take down the fences of a killed mover: callers wait at them.
	if err := p.lower(ctx, p.from, ledger.Cutover); err != nil {
		return err
	}
	for _, m := range p.moves {
		if err := fence.Create(ctx, p.from, m, m.Schema); err != nil {
			return fmt.Errorf("fence of %s on %s: %w", m.Schema, p.Source, err)
		}
	}
	p.event(progress.FencesMade)
	began := time.Now()
	for pause := retry.Shortest; ; pause = min(2*pause, retry.Longest) {
		if err := p.Connect(ctx); err != nil {
			return err
		}
		if err := p.ready(ctx, began); err != nil {
			return err
		}
		var err error
		if p.mapped, err = p.change().Prepare(ctx); err == nil {
			err = p.fenceOnce(ctx)
		}
		if err == nil {
			return nil
		}
		again := func(err error) { p.eventf(progress.Retrying, "tries again: %v", err) }
		if err := retry.After(ctx, err, "promotion", began, p.limits(), pause, again); err != nil {
			return err
		}
	}
}

// fenceOnce leaves all shards fenced and about to be promoted, or none.
func (p *Promotion) fenceOnce(ctx context.Context) error {
	p.hold.Take()
	err := p.fenceThem(ctx)
	ctx, cancel := detached(ctx)
	defer cancel()
	if err == nil {
		return p.setSteps(ctx, ledger.Promoting, ledger.Fenced)
	}
	if undone := p.unfenceAll(ctx, ledger.Cutover); undone != nil {
		return errors.Join(err, undone)
	}
	return err
}

// ready waits, while writers go on, for what would make them wait later: an open transaction, a vacuum, a standby
// that is behind.
func (p *Promotion) ready(ctx context.Context, began time.Time) error {
	var schemas []string
	for _, m := range p.moves {
		schemas = append(schemas, m.Schema)
	}
	if err := locks.WaitForOlder(ctx, p.from, p.limits(), began, schemas...); err != nil {
		return err
	}
	if err := locks.WaitForOlder(ctx, p.to, p.limits(), began, schemas...); err != nil { // whose readers would keep it from replaying the fences
		return fmt.Errorf("%s: %w", p.Target, err)
	}
	for _, schema := range schemas {
		if err := session.Run(ctx, p.from, "BEGIN; "+locks.ExcludeVacuum(schema)+"COMMIT"); err != nil {
			return err
		}
	}
	reported := time.Time{}
	for {
		err := p.follows(ctx, p.cfg.MaxLag)
		if !errors.Is(err, replicate.ErrLate) {
			return err
		}
		if p.limits().Exceeded(began) {
			return fmt.Errorf("no promotion within %s: %s: %w", p.cfg.Retry, p.Target, err)
		}
		if time.Since(reported) > wait.Interval {
			reported = time.Now()
			p.eventf(progress.Waiting, "waits for %s: %v", p.Target, err)
		}
	}
}

// follows returns when the standby has a marker that this writes on the source.
func (p *Promotion) follows(ctx context.Context, limit time.Duration) error {
	attempt := time.Now().UnixNano()
	if _, err := p.from.Exec(ctx, `INSERT INTO kiloshard.move_markers VALUES ($1, $2)`, p.Split, attempt); err != nil {
		return err
	}
	defer func() {
		_ = replicate.DropMarkers(context.WithoutCancel(ctx), p.from, p.Split) // also at the end
	}()
	err := wait.Until(ctx, limit, wait.Quickly, replicate.ErrLate, func() (there bool, err error) {
		const query = `SELECT pg_is_in_recovery(), EXISTS (SELECT FROM kiloshard.move_markers WHERE move = $1 AND attempt = $2)`
		standby := true
		err = p.to.QueryRow(ctx, query, p.Split, attempt).Scan(&standby, &there)
		if err == nil && !standby {
			return false, fmt.Errorf("%s: %w: expected a standby of %s", p.Target, errNoStandby, p.Source)
		}
		return there, session.Ignoring(session.Ignoring(err, "40001"), "42P01") // it replays a lock; it has no ledger yet
	})
	if errors.Is(err, replicate.ErrLate) {
		return fmt.Errorf("%w: %s", err, p.standby().Behind(ctx))
	}
	return err
}

// fenceThem fences all shards, and waits for the standby. Writers wait for the longest pause at most.
func (p *Promotion) fenceThem(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, p.cfg.MaxPause)
	defer cancel()
	settings := fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = %d; ", p.cfg.LockTimeout.Milliseconds(), p.cfg.MaxPause.Milliseconds())
	err := p.inParts(limited, p.from, settings, fence.RaiseAlone)
	if err == nil {
		p.event(progress.Fenced)
		if _, err = p.replayed(limited, 0); errors.Is(err, context.DeadlineExceeded) {
			err = errStandbyLate
		}
	}
	if err == nil {
		p.event(progress.Replayed)
		err = p.alone(limited)
	}
	if err == nil {
		return nil
	}
	if limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w (--max-pause %s): %w", locks.ErrPauseOver, p.cfg.MaxPause, err)
	}
	return err
}

// alone returns an error if another move is under way on the source: what it has made would be on both hosts. None begins any more.
func (p *Promotion) alone(ctx context.Context) error {
	var others bool
	err := p.from.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE outcome IS NULL AND split IS DISTINCT FROM $1)`, p.Split).Scan(&others)
	if err == nil && others {
		err = fmt.Errorf("%w, from or to %s", claim.ErrUnderWay, p.Source)
	}
	return err
}

// fences is an expression that identifies the fences of a promotion: other tries have other times.
const fences = `(SELECT coalesce(string_agg(id || ' ' || extract(epoch FROM fenced), ', ' ORDER BY id), '') FROM kiloshard.moves WHERE split = '%s' AND fenced IS NOT NULL)`

// fencesOn reads the fences of a host.
func (p *Promotion) fencesOn(ctx context.Context, conn *pgx.Conn) (found string, standby bool, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_is_in_recovery(), "+fmt.Sprintf(fences, p.Split)).Scan(&standby, &found)
	return found, standby, err
}

// replayed returns the fences when the standby has them, and so all that was written before them.
func (p *Promotion) replayed(ctx context.Context, limit time.Duration) (stand string, err error) {
	stand, _, err = p.fencesOn(ctx, p.from)
	if err != nil {
		return "", err
	}
	return stand, wait.Until(ctx, limit, wait.Quickly, errStandbyLate, func() (bool, error) {
		there, standby, err := p.fencesOn(ctx, p.to)
		switch {
		case err != nil:
			return false, session.Ignoring(err, "40001") // it replays a lock
		case !standby:
			return false, errNoStandby
		}
		return there == stand, nil
	})
}
