package placing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// Switch makes the next map one that names the target: from then on the target serves. It keeps changes that others make to the map at the same time, and
// works for up to [SwitchLimit] after ctx has ended: no host serves the shards until it returns.
//
// The first try is from before, the version that was read before the fence, unless it is nil. An abort makes a version of its own before it takes anything back,
// so the try fails then; further tries are made only while confirm returns nil, that is, while the ledger has no other mover for the move.
func (c Change) Switch(ctx context.Context, before *shards.Map, confirm func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SwitchLimit)
	defer cancel()
	read := func(ctx context.Context) (*shards.Map, error) {
		if m := before; m != nil {
			before = nil
			return m, nil
		}
		now, err := c.Load(ctx)
		if err == nil && c.Home(now) == c.Source {
			err = confirm(ctx)
		}
		return now, err
	}
	return c.swap(ctx, c.why(), read, func(now *shards.Map) ([]shards.Placement, error) {
		switch home := c.Home(now); home {
		case c.Target:
			return nil, nil
		case c.Source:
			return c.placement(now), nil
		default:
			return nil, fmt.Errorf("version %d of the map puts %s on %s: expected %s or %s", now.Version(), c.Names(), home, c.Source, c.Target)
		}
	})
}

// Stay makes sure that the map has the shards on the source, and that no other mover can still change that: it makes one more version of the
// map, so that a mover that follows the version before fails. becomes is the reason, as in "is aborted".
func (c Change) Stay(ctx context.Context, becomes string) error {
	first := 0
	why := fmt.Sprintf("the move of %s from %s to %s %s", c.Names(), c.Source, c.Target, becomes)
	return c.swap(ctx, why, c.Load, func(now *shards.Map) ([]shards.Placement, error) {
		if err := c.NotOnTarget(now); err != nil {
			return nil, err
		}
		if first == 0 {
			first = now.Version()
		}
		if now.Version() > first {
			return nil, nil
		}
		return now.Config().Placement, nil
	})
}

// swap changes the placement of the map that read returns, until the store has confirmed the change. change returns nil if there is nothing to
// do.
func (c Change) swap(ctx context.Context, why string, read func(context.Context) (*shards.Map, error), change func(now *shards.Map) ([]shards.Placement, error)) error {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := c.swapOnce(ctx, why, read, change)
		var conflict *mapstore.ConflictError
		var final *FinalError
		switch {
		case err == nil || mapstore.IsRefusal(err) || errors.As(err, &final):
			return err
		case !errors.As(err, &conflict):
			c.Failed(err)
		}
		if wait.Sleep(ctx, pause) != nil {
			return err
		}
	}
}

// FinalError is an error that another try would only repeat.
type FinalError struct{ Err error }

func (e *FinalError) Error() string { return e.Err.Error() }
func (e *FinalError) Unwrap() error { return e.Err }

func (c Change) swapOnce(ctx context.Context, why string, read func(context.Context) (*shards.Map, error), change func(now *shards.Map) ([]shards.Placement, error)) error {
	now, err := read(ctx)
	if err != nil {
		return err
	}
	placed, err := change(now)
	if err != nil {
		return &FinalError{err}
	}
	if placed == nil {
		return nil
	}
	config := now.Config()
	config.Placement = placed
	if _, err := c.Store.Swap(ctx, now.Version(), mapstore.Change{Config: config, By: c.By, Why: why}); err != nil {
		return &storeError{err}
	}
	return nil
}
