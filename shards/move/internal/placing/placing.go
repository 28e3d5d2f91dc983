// Package placing changes the map when shards change their host, and keeps it from being changed when their move is taken back.
package placing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// Change is a change of the map: some shards leave one host for another, together.
type Change struct {
	Store          mapstore.Store
	By             string // for the history of the map
	Shards         shards.Set
	Source, Target string
	Waits          func(format string, args ...any) // reports that the store does not answer
	Failed         func(err error)                  // reports an error after which the change is tried again
}

// loadLimit is how long one load of the map may take.
const loadLimit = 5 * time.Second

// SwitchLimit is how long a store that does not answer is tried again while shards are fenced.
const SwitchLimit = 30 * time.Second

// storeError is an error of the store.
type storeError struct{ err error }

func (e *storeError) Error() string { return "the store: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// IsUnavailable reports whether the store has not answered: it may do so later.
func IsUnavailable(err error) bool {
	var store *storeError
	return errors.As(err, &store) && !mapstore.IsRefusal(err)
}

// Load returns the newest map, within 5 s.
func (c Change) Load(ctx context.Context) (*shards.Map, error) {
	ctx, cancel := context.WithTimeout(ctx, loadLimit)
	defer cancel()
	now, err := c.Store.Load(ctx)
	if err != nil {
		return nil, &storeError{err}
	}
	return now.Map, nil
}

// Newest returns the newest map. It tries a store that does not answer again for up to [SwitchLimit].
func (c Change) Newest(ctx context.Context) (*shards.Map, error) {
	ctx, cancel := context.WithTimeout(ctx, SwitchLimit)
	defer cancel()
	reported := false
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		now, err := c.Load(ctx)
		if err == nil {
			return now, nil
		}
		if !reported {
			reported = true
			c.Waits("waits for %v", err)
		}
		if wait.Sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// NamesLimit is how many bytes the names of shards may take in a text: the reason of a change and the error of a move have limits, and readers.
const NamesLimit = 100

// Names returns the shards as words, in [NamesLimit] bytes and a word.
func (c Change) Names() string {
	if c.Shards.Len() == 1 {
		for n := range c.Shards.All() {
			return fmt.Sprintf("shard %d", n)
		}
	}
	return "shards " + c.Shards.Short(NamesLimit)
}

// Home returns the host that a map has the shards on, or the names of several.
func (c Change) Home(m *shards.Map) string {
	var all []string
	for n := range c.Shards.All() {
		if host := m.Host(n).Name; !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return strings.Join(all, " and ")
}

// OnSource returns an error unless a map has the shards on the source.
func (c Change) OnSource(m *shards.Map) error {
	if home := c.Home(m); home != c.Source {
		return fmt.Errorf("the map has %s on %s by now: expected %s", c.Names(), home, c.Source)
	}
	return nil
}

// NotOnTarget returns an error if a map has one of the shards on the target. Then the target serves it, even if the ledger differs: a source that has failed over may
// have lost its fence.
func (c Change) NotOnTarget(m *shards.Map) error {
	for n := range c.Shards.All() {
		if m.Host(n).Name == c.Target {
			return fmt.Errorf("version %d of the map puts shard %d on %s already: expected move resume, and then a move back to %s", m.Version(), n, c.Target, c.Source)
		}
	}
	return nil
}

// placement returns the placement of a map with the shards on the target.
func (c Change) placement(m *shards.Map) []shards.Placement {
	var all []shards.Placement
	for _, h := range m.Hosts() {
		var on []shards.Number
		for n := range m.All().All() {
			if c.Shards.Has(n) && h.Name == c.Target || !c.Shards.Has(n) && m.Host(n).Name == h.Name {
				on = append(on, n)
			}
		}
		if len(on) > 0 {
			all = append(all, shards.Placement{Shards: shards.SetOf(on...), Host: h.Name})
		}
	}
	return all
}

// Next returns the map that follows the change of a map.
func (c Change) Next(m *shards.Map) (*shards.Map, error) {
	config := m.Config()
	config.Placement = c.placement(m)
	return config.Map()
}

// why is the reason of the change, for the history of the map.
func (c Change) why() string {
	return fmt.Sprintf("%s moved from %s to %s", c.Names(), c.Source, c.Target)
}

// Check returns an error if the store would refuse the change of the newest map.
func (c Change) Check(ctx context.Context) error {
	now, err := c.Load(ctx)
	if err != nil {
		return err
	}
	return c.check(ctx, now)
}

func (c Change) check(ctx context.Context, now *shards.Map) error {
	store, ok := c.Store.(mapstore.Checker)
	if !ok {
		return nil
	}
	config := now.Config()
	config.Placement = c.placement(now)
	if err := store.Check(ctx, mapstore.Change{Config: config, By: c.By, Why: c.why()}); err != nil {
		return &storeError{fmt.Errorf("it would not take the new map: %w", err)}
	}
	return nil
}

// Prepare loads the map for [Change.Switch] just before a cutover, and checks the change: if the store did not answer then, or refused the change, the shards
// would be fenced for long.
func (c Change) Prepare(ctx context.Context) (*shards.Map, error) {
	now, err := c.Load(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.OnSource(now); err != nil {
		return nil, err
	}
	return now, c.check(ctx, now)
}
