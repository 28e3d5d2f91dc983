package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// switchLimit is how long a store that does not answer is asked again while the shard is fenced.
const switchLimit = 30 * time.Second

// placement returns where the shards of a map are, with one of them on another host.
func placement(m *shards.Map, n shards.Number, to string) []shards.Placement {
	var all []shards.Placement
	for _, h := range m.Hosts() {
		var on []shards.Number
		for other := range m.All().All() {
			if other == n && h.Name == to || other != n && m.Host(other).Name == h.Name {
				on = append(on, other)
			}
		}
		if len(on) > 0 {
			all = append(all, shards.Placement{Shards: shards.SetOf(on...), Host: h.Name})
		}
	}
	return all
}

// switchMap makes the next map one that names the target: from then on the target serves. It goes on although ctx has
// ended, since nobody is served meanwhile. Whoever changes the map at the same time is followed.
func (j *job) switchMap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), switchLimit)
	defer cancel()
	why := fmt.Sprintf("shard %d moved from %s to %s", j.Shard, j.Source, j.Target)
	err := j.swap(ctx, why, func(now *shards.Map) ([]shards.Placement, error) {
		switch now.Host(j.Shard).Name {
		case j.Target:
			return nil, nil
		case j.Source:
			return placement(now, j.Shard, j.Target), nil
		}
		return nil, fmt.Errorf("version %d of the map puts the shard on %s: expected %s or %s", now.Version(), now.Host(j.Shard).Name, j.Source, j.Target)
	})
	if err == nil {
		j.event("switched")
	}
	return err
}

// swap changes the placement of the newest map, until the store has said that it is changed. change returns nil if nothing is to be done.
func (j *job) swap(ctx context.Context, why string, change func(now *shards.Map) ([]shards.Placement, error)) error {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := j.swapOnce(ctx, why, change)
		var conflict *mapstore.ConflictError
		var refused *shards.ChangeError
		var placed *placedError
		switch {
		case err == nil || errors.As(err, &refused) || errors.As(err, &placed):
			return err
		case !errors.As(err, &conflict):
			j.event("the store: %v", err)
		}
		if sleep(ctx, pause) != nil {
			return err
		}
	}
}

// placedError says that the map puts the shard where nobody expects it.
type placedError struct{ error }

func (j *job) swapOnce(ctx context.Context, why string, change func(now *shards.Map) ([]shards.Placement, error)) error {
	now, err := j.cfg.Store.Load(ctx)
	if err != nil {
		return err
	}
	placed, err := change(now.Map)
	if err != nil {
		return &placedError{err}
	}
	if placed == nil {
		return nil
	}
	c := now.Map.Config()
	c.Placement = placed
	_, err = j.cfg.Store.Swap(ctx, now.Map.Version(), mapstore.Change{Config: c, By: j.cfg.By, Why: why})
	return err
}
