package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
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

// switchMap makes the next map one that names the target: from then on the target serves. It goes on although ctx has
// ended, since nobody is served meanwhile. Whoever changes the map at the same time is followed.
func (j *job) switchMap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), switchLimit)
	defer cancel()
	why := fmt.Sprintf("%s moved from %s to %s", j.moving(), j.Source, j.Target)
	err := j.swap(ctx, why, func(now *shards.Map) ([]shards.Placement, error) {
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

// numbers are the shards that change their host together.
func (j *job) numbers() shards.Set {
	if j.leaving.Len() > 0 {
		return j.leaving
	}
	return shards.SetOf(j.Shard)
}

// moving names them.
func (j *job) moving() string {
	if j.leaving.Len() > 0 {
		return "shards " + j.leaving.String()
	}
	return fmt.Sprintf("shard %d", j.Shard)
}

// home returns the host that they are on, or the names of several.
func (j *job) home(m *shards.Map) string {
	var all []string
	for n := range j.numbers().All() {
		if host := m.Host(n).Name; !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return strings.Join(all, " and ")
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
