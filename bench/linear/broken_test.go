package linear_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/bench/linear"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Main{M: m}) }

// memory is a store in memory, correct or broken in one way.
type memory struct {
	fault string

	mu       sync.Mutex
	versions []mapstore.Entry
}

func (s *memory) Load(context.Context) (mapstore.Entry, error) {
	defer runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.versions) - 1
	if s.fault == "stale loads" && last > 0 && rand.IntN(4) == 0 {
		last -= min(last, 5)
	}
	if last < 0 {
		return mapstore.Entry{}, mapstore.ErrNoMap
	}
	return s.versions[last], nil
}

func (s *memory) Swap(_ context.Context, from int, next mapstore.Change) (mapstore.Entry, error) {
	defer runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == "reads before it swaps" {
		if err := s.compare(from); err != nil {
			return mapstore.Entry{}, err
		}
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	} else if err := s.compare(from); err != nil && s.fault != "no compare" {
		return mapstore.Entry{}, err
	}
	if s.fault == "unknown, and made" && rand.IntN(2) == 0 {
		_, _ = s.add(from, next)
		return mapstore.Entry{}, mapstore.ErrOutcomeUnknown
	}
	if s.fault == "unknown, and not made" && rand.IntN(2) == 0 {
		return mapstore.Entry{}, mapstore.ErrOutcomeUnknown
	}
	if s.fault == "loses an acknowledged swap" && from > 0 && rand.IntN(3) == 0 {
		entry, err := s.add(from, next)
		s.versions = s.versions[:from]
		return entry, err
	}
	if s.fault == "makes a refused swap" && rand.IntN(3) == 0 {
		_, _ = s.add(from, next)
		return mapstore.Entry{}, &mapstore.ConflictError{Wanted: from, Found: from + 1}
	}
	return s.add(from, next)
}

func (s *memory) compare(from int) error {
	if len(s.versions) != from {
		return &mapstore.ConflictError{Wanted: from, Found: len(s.versions)}
	}
	return nil
}

// add writes a version on top of the latest.
func (s *memory) add(from int, next mapstore.Change) (mapstore.Entry, error) {
	config := next.Config
	config.Version = from + 1
	m, err := config.Map()
	if err != nil {
		return mapstore.Entry{}, err
	}
	entry := mapstore.Entry{Map: m, By: next.By, Why: next.Why}
	s.versions = append(s.versions[:min(from, len(s.versions))], entry)
	return entry, nil
}

func (s *memory) History(context.Context) iter.Seq2[mapstore.Entry, error] {
	return func(yield func(mapstore.Entry, error) bool) {
		for i, entry := range slices.Backward(s.versions) {
			if s.fault == "a gap in the history" && i == 2 {
				continue
			}
			if !yield(entry, nil) {
				return
			}
		}
	}
}

func (s *memory) Watch(context.Context, int) iter.Seq2[mapstore.Entry, error] { panic("not used") }
func (s *memory) Close() error                                                { return nil }

// Run finds every kind of broken store, and accepts a correct one.
func TestRunFindsBrokenStores(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault   string
		verdict string
		wrong   bool // in the history
	}{
		{"", "linearizable", false},
		{"unknown, and made", "linearizable", false},
		{"unknown, and not made", "linearizable", false},
		{"no compare", "not linearizable", true},
		{"reads before it swaps", "not linearizable", true},
		{"stale loads", "not linearizable", false},
		{"loses an acknowledged swap", "not linearizable", true},
		{"makes a refused swap", "not linearizable", true},
		{"a gap in the history", "linearizable", true},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			report, err := linear.Run(t.Context(), linear.Config{
				Stores: []mapstore.Store{&memory{fault: test.fault}}, Cluster: "photos", Operations: 2000,
			})
			if err != nil {
				t.Fatal(err)
			}
			if report.Verdict != test.verdict || (len(report.Wrong) > 0) != test.wrong || report.OK() != (test.verdict == "linearizable" && !test.wrong) {
				t.Errorf("%s; %.3v", report, report.Wrong)
			}
		})
	}
}

func TestRunKills(t *testing.T) {
	t.Parallel()
	kills := 0
	cfg := linear.Config{
		Stores: []mapstore.Store{&memory{}}, Cluster: "photos", Operations: 500, Kills: 7,
		Kill: func(context.Context) error { kills++; return nil },
	}
	report, err := linear.Run(t.Context(), cfg)
	if err != nil || kills != 7 || report.Kills != 7 || report.Operations < 500 {
		t.Errorf("%d kills, %v, %v", kills, report, err)
	}
	cfg.Kill = func(context.Context) error { return fmt.Errorf("still running") }
	if _, err := linear.Run(t.Context(), cfg); err == nil || err.Error() != "kill the store: still running" {
		t.Errorf("got %v", err)
	}
}
