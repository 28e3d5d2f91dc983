package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// switchLimit is how long a store that does not answer is asked again while the shard is fenced.
const switchLimit = 30 * time.Second

// placement returns where the shards of a map are, with some of them on another host.
func placement(m *shards.Map, moved shards.Set, to string) []shards.Placement {
	var all []shards.Placement
	for _, h := range m.Hosts() {
		var on []shards.Number
		for n := range m.All().All() {
			if moved.Has(n) && h.Name == to || !moved.Has(n) && m.Host(n).Name == h.Name {
				on = append(on, n)
			}
		}
		if len(on) > 0 {
			all = append(all, shards.Placement{Shards: shards.SetOf(on...), Host: h.Name})
		}
	}
	return all
}

// moves says why the map is changed when the shards change their host.
func (j *job) moves() string {
	return fmt.Sprintf("%s moved from %s to %s", j.moving(), j.Source, j.Target)
}

// switchMap makes the next map one that names the target: from then on the target serves. It goes on although ctx has
// ended, since nobody is served meanwhile. Changes that others make to the map at the same time are kept.
//
// The first try is from the version that was read before the fence. An abort makes a version of its own before it takes anything back, so
// the try fails then; each further one is made only while the ledger says that no other mover has the move.
func (j *job) switchMap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), switchLimit)
	defer cancel()
	before := j.mapped
	read := func(ctx context.Context) (*shards.Map, error) {
		if m := before; m != nil {
			before = nil
			return m, nil
		}
		now, err := j.load(ctx)
		if err == nil && j.home(now) == j.Source {
			err = j.confirm(ctx)
		}
		return now, err
	}
	err := j.swap(ctx, j.moves(), read, func(now *shards.Map) ([]shards.Placement, error) {
		switch home := j.home(now); home {
		case j.Target:
			return nil, nil
		case j.Source:
			return placement(now, j.numbers(), j.Target), nil
		default:
			return nil, fmt.Errorf("version %d of the map puts %s on %s: expected %s or %s", now.Version(), j.moving(), home, j.Source, j.Target)
		}
	})
	if err == nil {
		j.event("switched")
	}
	return err
}

// swap changes the placement of the map that read returns, until the store has said that it is changed. change returns nil if nothing is to
// be done.
func (j *job) swap(ctx context.Context, why string, read func(context.Context) (*shards.Map, error), change func(now *shards.Map) ([]shards.Placement, error)) error {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := j.swapOnce(ctx, why, read, change)
		var conflict *mapstore.ConflictError
		var final *finalError
		switch {
		case err == nil || mapstore.IsRefusal(err) || errors.As(err, &final):
			return err
		case !errors.As(err, &conflict):
			j.event("%v", err)
		}
		if wait.Sleep(ctx, pause) != nil {
			return err
		}
	}
}

// finalError says that another try would end alike.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

func (j *job) swapOnce(ctx context.Context, why string, read func(context.Context) (*shards.Map, error), change func(now *shards.Map) ([]shards.Placement, error)) error {
	now, err := read(ctx)
	if err != nil {
		return err
	}
	placed, err := change(now)
	if err != nil {
		return &finalError{err}
	}
	if placed == nil {
		return nil
	}
	c := now.Config()
	c.Placement = placed
	if _, err := j.cfg.Store.Swap(ctx, now.Version(), mapstore.Change{Config: c, By: j.cfg.By, Why: why}); err != nil {
		return &storeError{err}
	}
	return nil
}
