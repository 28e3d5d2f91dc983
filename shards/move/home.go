package move

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// loadLimit is how long one load of the map may take.
const loadLimit = 5 * time.Second

// storeError says that the store has not done what it was to do.
type storeError struct{ err error }

func (e *storeError) Error() string { return "the store: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// load returns the newest map. The error is a [storeError].
func (j *job) load(ctx context.Context) (*shards.Map, error) {
	ctx, cancel := context.WithTimeout(ctx, loadLimit)
	defer cancel()
	now, err := j.cfg.Store.Load(ctx)
	if err != nil {
		return nil, &storeError{err}
	}
	return now.Map, nil
}

// newest returns the newest map. A store that does not answer is asked again for up to switchLimit.
func (j *job) newest(ctx context.Context) (*shards.Map, error) {
	ctx, cancel := context.WithTimeout(ctx, switchLimit)
	defer cancel()
	told := false
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		now, err := j.load(ctx)
		if err == nil {
			return now, nil
		}
		if !told {
			told = true
			j.event("waits for %v", err)
		}
		if wait.Sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// numbers are the shards that change their host together.
func (j *job) numbers() shards.Set {
	if j.leaving.Len() > 0 {
		return j.leaving
	}
	return shards.SetOf(j.Shard)
}

// namesLimit is how many bytes the names of shards may take in a text: the why of a change and the error of a move have limits, and readers.
const namesLimit = 100

// moving names them, in namesLimit bytes and a word.
func (j *job) moving() string {
	if j.leaving.Len() > 0 {
		return "shards " + j.leaving.Short(namesLimit)
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

// onSource returns an error if a map has them elsewhere.
func (j *job) onSource(m *shards.Map) error {
	if home := j.home(m); home != j.Source {
		return fmt.Errorf("the map has %s on %s by now: expected %s", j.moving(), home, j.Source)
	}
	return nil
}

// readMap loads the map that the cutover changes, just before it begins, and asks the store whether it would take the change: with one that
// does not answer, or refuses it, the shard would be fenced for long.
func (j *job) readMap(ctx context.Context) (err error) {
	if j.mapped, err = j.load(ctx); err != nil {
		return err
	}
	if err := j.onSource(j.mapped); err != nil {
		return err
	}
	return j.takes(ctx, j.mapped)
}

// notOnTarget returns an error if the map has one of them on the target, which serves it then, whatever the ledger says: the source may
// have lost its fence, in a failover to a standby that had not replayed it.
func (j *job) notOnTarget(m *shards.Map) error {
	for n := range j.numbers().All() {
		if m.Host(n).Name == j.Target {
			return fmt.Errorf("version %d of the map puts shard %d on %s already: expected move resume, and then a move back to %s", m.Version(), n, j.Target, j.Source)
		}
	}
	return nil
}

// stay makes sure that the map has the shards on the source, and that no change of another mover can still come: it makes one more version of the
// map, so that a mover that follows the version before fails. becomes says why, as in "is aborted".
func (j *job) stay(ctx context.Context, becomes string) error {
	first := 0
	why := fmt.Sprintf("the move of %s from %s to %s %s", j.moving(), j.Source, j.Target, becomes)
	return j.swap(ctx, why, j.load, func(now *shards.Map) ([]shards.Placement, error) {
		if err := j.notOnTarget(now); err != nil {
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
