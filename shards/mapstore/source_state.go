package mapstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// accept makes a map of the store the last one, and writes the copy.
func (s *Source) accept(m *shards.Map) error {
	last, _ := s.copy()
	if m.Config().Cluster != s.cfg.Cluster && s.cfg.Cluster != "" {
		return s.refused(&shards.ChangeError{Field: "cluster", From: s.cfg.Cluster, To: m.Config().Cluster, Why: "this is the map of another cluster"})
	}
	if last != nil {
		// Without a version, as in a file that no store has changed, it is unknown which map is newer.
		if v := m.Version(); v < last.Version() || v == last.Version() && v > 0 && !sameMap(last, m) {
			return s.refused(&WentBackError{Seen: last.Version(), Found: m.Version()})
		}
		// The store has decided whether keys may move.
		if e := (*shards.ChangeError)(nil); errors.As(shards.CheckChange(last, m), &e) && !e.MovesKeys {
			return s.refused(e)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.Version() > m.Version() { // another goroutine was faster
		return nil
	}
	s.last = m
	s.setFresh()
	if err := s.keep(m); err != nil {
		s.cfg.Logger.Warn("the copy of the map was not written", slog.String("file", s.cfg.Cache), slog.Any("error", err))
	}
	return nil
}

// refused adds to an error how to accept the map.
func (s *Source) refused(err error) error {
	if s.cfg.Cache == "" {
		return err
	}
	return fmt.Errorf("%w (to accept it, delete the copy of the last map, %s, and restart)", err, s.cfg.Cache)
}

// markStale records that the store gives no map, unless ctx ended.
func (s *Source) markStale(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setStale(ctx, err)
}

// setStale records that the store gives no map. The caller holds mu.
func (s *Source) setStale(ctx context.Context, err error) {
	first := s.why == nil
	s.why = err
	if !first {
		return
	}
	s.since = time.Now()
	close(s.stale)
	version := 0
	if s.last != nil {
		version = s.last.Version()
	}
	s.cfg.Logger.WarnContext(ctx, "the store gives no map: the last one stays in use", slog.Int("version", version), slog.Any("error", err))
}

// setFresh records that the store works. The caller holds mu.
func (s *Source) setFresh() {
	if s.why != nil {
		s.cfg.Logger.Info("the store gives maps again", slog.Duration("after", time.Since(s.since)))
		s.why, s.since, s.stale = nil, time.Time{}, make(chan struct{})
	}
}

// watchRecovery loads the map while the source is stale, since Watch does not report that the store is back with the
// same map. At the start it also loads the map once, to compare it with the last one: Watch knows only that one's
// version.
func (s *Source) watchRecovery(ctx context.Context) {
	timer := time.NewTicker(recheckInterval)
	defer timer.Stop()
	var stale <-chan struct{} // nil at the start
	for {
		if stale != nil {
			select {
			case <-ctx.Done():
				return
			case <-stale:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s.mu.Lock()
		stale = s.stale
		s.mu.Unlock()
		limited, cancel := context.WithTimeout(ctx, s.cfg.Limit)
		e, err := s.cfg.Store.Load(limited)
		cancel()
		if err == nil {
			s.compare(ctx, e.Map)
		}
	}
}

// compare records that the store works if it holds the last map, and that the source is stale if it holds another map
// under the same version. Watch reports a newer map.
func (s *Source) compare(ctx context.Context, m *shards.Map) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.last == nil || s.last.Version() != m.Version():
	case sameMap(s.last, m):
		s.setFresh()
	default:
		s.setStale(ctx, s.refused(&WentBackError{Seen: m.Version(), Found: m.Version()}))
	}
}

// sameMap reports whether two maps have the same text, or are both nil.
func sameMap(a, b *shards.Map) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	textOfA, errOfA := a.Config().Shared().YAML()
	textOfB, errOfB := b.Config().Shared().YAML()
	return errOfA == nil && errOfB == nil && bytes.Equal(textOfA, textOfB)
}
