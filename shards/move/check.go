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
	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/sql"
)

// CheckError has all reasons found why a shard cannot be moved.
type CheckError struct{ Problems []string }

// Error joins the problems.
func (e *CheckError) Error() string { return strings.Join(e.Problems, "; ") }

// check finds what would keep the shard from being moved, as a [CheckError], what an operator should know,
// and how many bytes the shard takes. It changes nothing. lost are the shards whose ways back will be closed.
func (j *job) check(ctx context.Context, lost shards.Set) (space int64, notes []string, err error) {
	for _, conn := range []*pgx.Conn{j.from, j.to} {
		var under bool
		var split *string // a host that is split while a move makes things there would have them twice
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
		space, notes, err = j.checkHosts(both, e, lost)
		return err
	})
	if err := group.Wait(); err != nil {
		return space, notes, err
	}
	if unknown != nil {
		e.Problems = append(e.Problems, j.Source+": "+unknown.Error())
	}
	if err := j.change().Check(ctx); err != nil {
		e.Problems = append(e.Problems, err.Error())
	}
	var fenced bool
	if err := j.to.QueryRow(ctx, `SELECT `+sql.IsOldFence("$1::text"), j.Schema).Scan(&fenced); err != nil {
		return space, notes, err
	}
	if fenced {
		err := session.Run(ctx, j.to, fence.Only(j.Schema))
		if err == nil {
			err = structure.NothingOutside(ctx, j.to, j.Move)
		}
		if err != nil {
			e.Problems = append(e.Problems, j.Target+": "+err.Error())
		}
	}
	if len(e.Problems) == 0 { // otherwise a problem may be the reason why there is no fence
		if err := fence.Try(ctx, j.from, j.Move); session.Code(err) != "" {
			e.Problems = append(e.Problems, fmt.Sprintf("%s: what is to take the shard's place cannot be made: %v", j.Source, err))
		} else if err != nil {
			return space, notes, err
		}
	}
	switch {
	case ctx.Err() != nil: // which may be the problem
		return space, notes, context.Cause(ctx)
	case len(e.Problems) > 0:
		return space, notes, e
	}
	return space, notes, nil
}

// checkHosts adds the problems of the hosts to e, by the job's own sessions.
func (j *job) checkHosts(ctx context.Context, e *CheckError, lost shards.Set) (space int64, notes []string, err error) {
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
	if lost.Has(j.Shard) {
		notes = append(notes, "its way back of an earlier move is of no use any more, and will be closed")
	} else {
		open, err := checks.OpenWays(ctx, j.from, j.Shard)
		if err != nil {
			return 0, nil, err
		}
		add(j.Source, open)
	}
	clocks, err := checks.Clocks(ctx, j.from, j.to)
	if err != nil {
		return 0, nil, err
	}
	add(j.Target, clocks)
	// A problem may be the reason why it cannot log in.
	if !j.Offline {
		if err := j.checkLogin(ctx); err != nil && (ctx.Err() != nil || len(e.Problems) == 0) {
			return shard.Bytes, notes, err
		} else if err != nil {
			e.Problems = append(e.Problems, err.Error())
		}
	}
	return shard.Bytes, notes, nil
}

// checkLogin has the target log in to the source, by a subscription that is rolled back.
func (j *job) checkLogin(ctx context.Context) error {
	tx, err := session.Begin(ctx, j.to)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return j.stream().Subscribe(ctx, tx)
}
