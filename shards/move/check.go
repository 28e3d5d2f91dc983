package move

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// CheckError says why a shard cannot be moved: all that was found, so that it can be put right at once.
type CheckError struct{ Problems []string }

// Error joins what was found.
func (e *CheckError) Error() string { return strings.Join(e.Problems, "; ") }

// check finds all that is known beforehand to keep the shard from being moved, as a [CheckError], what one should know,
// and how many bytes the shard takes. It changes nothing.
func (j *job) check(ctx context.Context) (space int64, notes []string, err error) {
	for _, conn := range []*pgx.Conn{j.from, j.to} {
		var under bool
		var split *string // what a move makes on a host while that is split would be on two
		const query = `SELECT coalesce(bool_or(shard = $1), false), max(split) FROM kiloshard.moves WHERE outcome IS NULL`
		err = conn.QueryRow(ctx, query, j.Shard).Scan(&under, &split)
		switch {
		case err != nil:
			return 0, nil, err
		case split != nil:
			return 0, nil, fmt.Errorf("a host is being split by the promotion of its standby: %w: see kiloshard move status", ErrUnderWay)
		case under && conn == j.from:
			return 0, nil, fmt.Errorf("%w: see kiloshard move status", ErrUnderWay)
		}
	}
	e := &CheckError{}
	var unknown *snapshot.UnknownError
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) { // in a session of its own
		if err = j.readStatements(both); errors.As(err, &unknown) {
			err = nil
		}
		return err
	})
	group.Go(func() (err error) {
		space, notes, err = j.checkHosts(both, e)
		return err
	})
	if err := group.Wait(); err != nil {
		return space, notes, err
	}
	if unknown != nil {
		e.Problems = append(e.Problems, j.Source+": "+unknown.Error())
	}
	if err := j.checkStore(ctx); err != nil {
		e.Problems = append(e.Problems, err.Error())
	}
	var fence bool
	if err := j.to.QueryRow(ctx, `SELECT `+sql.IsOldFence("$1::text"), j.Schema).Scan(&fence); err != nil {
		return space, notes, err
	}
	if fence {
		err := session.Run(ctx, j.to, onlyFence(j.Schema))
		if err == nil {
			err = j.nothingOutside(ctx)
		}
		if err != nil {
			e.Problems = append(e.Problems, j.Target+": "+err.Error())
		}
	}
	if len(e.Problems) == 0 { // else what was found may be why there is no fence
		if err := j.tryFence(ctx); session.Code(err) != "" {
			e.Problems = append(e.Problems, fmt.Sprintf("%s: what is to take the shard's place cannot be made: %v", j.Source, err))
		} else if err != nil {
			return space, notes, err
		}
	}
	switch {
	case ctx.Err() != nil: // which may be what was found
		return space, notes, context.Cause(ctx)
	case len(e.Problems) > 0:
		return space, notes, e
	}
	return space, notes, nil
}

// checkStore returns an error if the store would not take the change that the move ends with: it would be known only behind the fence.
func (j *job) checkStore(ctx context.Context) error {
	now, err := j.load(ctx)
	if err != nil {
		return err
	}
	return j.takes(ctx, now)
}

// takes returns an error if the store would not take that change to a map.
func (j *job) takes(ctx context.Context, now *shards.Map) error {
	store, ok := j.cfg.Store.(mapstore.Checker)
	if !ok {
		return nil
	}
	c := now.Config()
	c.Placement = placement(now, j.numbers(), j.Target)
	if err := store.Check(ctx, mapstore.Change{Config: c, By: j.cfg.By, Why: j.moves()}); err != nil {
		return &storeError{fmt.Errorf("it would not take the new map: %w", err)}
	}
	return nil
}

// checkHosts adds to e what else there is to find, by the job's own sessions.
func (j *job) checkHosts(ctx context.Context, e *CheckError) (space int64, notes []string, err error) {
	add := func(host string, f checks.Found) {
		for _, p := range f.Problems {
			e.Problems = append(e.Problems, host+": "+p)
		}
		for _, n := range f.Notes {
			notes = append(notes, host+": "+n)
		}
	}
	shard, err := checks.OnSource(ctx, j.from, j.Schema, j.Offline)
	if err != nil {
		return 0, nil, err
	}
	add(j.Source, shard.Found)
	target, err := shard.OnTarget(ctx, j.to, checks.Way{Offline: j.Offline, WithPassword: j.cfg.LoginWithPassword, Extensions: j.cfg.Map.Extensions()})
	if err != nil {
		return 0, nil, err
	}
	add(j.Target, target)
	if j.Back != nil {
		source, target, err := shard.WayBack(ctx, j.from, j.to)
		if err != nil {
			return 0, nil, err
		}
		add(j.Source, source)
		add(j.Target, target)
	}
	if j.cfg.lost.Has(j.Shard) {
		notes = append(notes, "its way back of an earlier move is of no use any more, and will be closed")
	} else {
		open, err := session.Texts(ctx, j.from, openWays, fmt.Sprintf("kiloshard_move_%05d_%%_back", j.Shard))
		if err != nil {
			return 0, nil, err
		}
		add(j.Source, checks.Found{Problems: open})
	}
	clocks, err := checks.Clocks(ctx, j.from, j.to)
	if err != nil {
		return 0, nil, err
	}
	add(j.Target, clocks)
	// What was found may be why it cannot log in.
	if !j.Offline {
		if err := j.checkLogin(ctx); err != nil && (ctx.Err() != nil || len(e.Problems) == 0) {
			return shard.Bytes, notes, err
		} else if err != nil {
			e.Problems = append(e.Problems, err.Error())
		}
	}
	return shard.Bytes, notes, nil
}

// openWays names the slots of ways back of earlier moves to the host, which would lose what is written elsewhere.
const openWays = `
	SELECT format('slot %s keeps the way back of an earlier move open: expected move rollback, or move clean with the shard''s number, which closes it', slot_name)
	FROM pg_replication_slots WHERE slot_name LIKE $1 AND database = current_database()`

// checkLogin has the target log in to the source, by a subscription that is rolled back.
func (j *job) checkLogin(ctx context.Context) error {
	tx, err := session.Begin(ctx, j.to)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return j.makeSubscription(ctx, tx)
}
