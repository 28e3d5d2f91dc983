package mapstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// SourceConfig says where a [Source] has its maps from.
type SourceConfig struct {
	Store Store // stays the caller's to close

	// Cluster is whose map it must be. Defaults to that of whichever map comes first.
	Cluster string

	// Cache is the path of a file in which the last map is kept, for a start while the store is down. It must be in a
	// directory that others cannot write to. Defaults to none.
	Cache string

	// Lookup knows the variables in the DSNs of the cached copy, such as [os.LookupEnv].
	Lookup func(name string) (value string, ok bool)

	// Limit is how long Load waits for the store before it takes the cached copy. Defaults to 5 seconds.
	Limit time.Duration

	// Logger defaults to silence.
	Logger *slog.Logger
}

// Source is where a service has its maps from: a store, and a copy of the last map for when the store is down. It is
// safe for concurrent use.
//
// It never serves a map that cannot come after the last one: of another cluster, with another epoch or layout, of an
// older version, or another map under the version of the last one, as of a store that was put back to an old state or
// lost its newest changes in a failover. To accept such a map, delete the copy and restart the service.
type Source struct {
	cfg SourceConfig

	mu    sync.Mutex // guards what follows
	last  *shards.Map
	since time.Time
	why   error         // nil while the store answers
	stale chan struct{} // closed when why is set
}

const (
	defaultSourceLimit = 5 * time.Second
	recheck            = time.Second // between attempts to find out that a store is back
)

// NewSource returns a source of maps. It asks nobody yet.
func NewSource(cfg SourceConfig) *Source {
	if cfg.Limit <= 0 {
		cfg.Limit = defaultSourceLimit
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Source{cfg: cfg, stale: make(chan struct{})}
}

// Format prints which store it is that the maps come from for every verb, so that no DSN is printed.
func (s *Source) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "maps of %v", s.cfg.Store)
}

// Load returns the map of the store or, when that does not answer within the limit, holds no map or what is none, the
// cached copy. That it is a copy [Source.Stale] tells, and a warning. Without a copy it returns the store's error.
//
// It returns a [WentBackError] or a [shards.ChangeError] for a store whose map cannot come after the copy.
func (s *Source) Load(ctx context.Context) (*shards.Map, error) {
	limited, cancel := context.WithTimeout(ctx, s.cfg.Limit)
	defer cancel()
	e, err := s.cfg.Store.Load(limited)
	cached, cacheErr := s.copy()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case err == nil:
		if err := s.accept(e.Map); err != nil {
			return nil, err
		}
		return e.Map, nil
	case cached != nil && errors.Is(err, ErrNoMap):
		return nil, s.refused(&WentBackError{Seen: cached.Version()})
	case cached != nil && !errors.Is(err, ErrClosed):
		s.lost(context.WithoutCancel(ctx), err)
		return cached, nil
	case cacheErr != nil:
		return nil, fmt.Errorf("%w; and no cached copy: %w", err, cacheErr)
	}
	return nil, err
}

// Watch yields the maps of the store that are newer than version after, as [Store.Watch] does, and its errors.
func (s *Source) Watch(ctx context.Context, after int) iter.Seq2[*shards.Map, error] {
	return func(yield func(*shards.Map, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var back sync.WaitGroup
		defer back.Wait()
		defer cancel()
		back.Go(func() { s.findBack(ctx) })
		for e, err := range s.cfg.Store.Watch(ctx, after) {
			if err == nil {
				err = s.accept(e.Map)
			}
			if err != nil {
				e.Map = nil
				s.lost(ctx, err)
			}
			if !yield(e.Map, err) {
				return
			}
		}
	}
}

// Stale tells since when the last map may not be the present one, and why: the store does not answer, or holds what is
// no map, or one that was refused. why is nil while the store is well. Whether a store is back whose map is the same is
// found out while somebody watches.
func (s *Source) Stale() (since time.Time, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.why
}

// accept takes a map of the store for the last one, and keeps a copy.
func (s *Source) accept(m *shards.Map) error {
	cached, _ := s.copy()
	if m.Config().Cluster != s.cfg.Cluster && s.cfg.Cluster != "" {
		return s.refused(&shards.ChangeError{Field: "cluster", From: s.cfg.Cluster, To: m.Config().Cluster, Why: "this is the map of another cluster"})
	}
	if cached != nil {
		// Without a version, as in a file that is no store yet, nothing tells which is the newer one.
		if v := m.Version(); v < cached.Version() || v == cached.Version() && v > 0 && !same(cached, m) {
			return s.refused(&WentBackError{Seen: cached.Version(), Found: m.Version()})
		}
		// Whether keys may move was for the store to say.
		if e := (*shards.ChangeError)(nil); errors.As(shards.CheckChange(cached, m), &e) && !e.MovesKeys {
			return s.refused(e)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.Version() > m.Version() { // another was quicker
		return nil
	}
	s.last = m
	s.found()
	if err := s.keep(m); err != nil {
		s.cfg.Logger.Warn("no copy of the map is kept", slog.String("file", s.cfg.Cache), slog.Any("error", err))
	}
	return nil
}

// refused says how a map that was refused can be had.
func (s *Source) refused(err error) error {
	if s.cfg.Cache == "" {
		return err
	}
	return fmt.Errorf("%w (if that is right, remove the copy of the last map, %s, and start again)", err, s.cfg.Cache)
}

// lost notes that the store does not answer.
func (s *Source) lost(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLost(ctx, err)
}

// noteLost is called under mu.
func (s *Source) noteLost(ctx context.Context, err error) {
	first := s.why == nil
	s.why = err
	if first {
		s.since = time.Now()
		close(s.stale)
		version := 0
		if s.last != nil {
			version = s.last.Version()
		}
		s.cfg.Logger.WarnContext(ctx, "the store gives no map: the last one goes on", slog.Int("version", version), slog.Any("error", err))
	}
}

// found notes that the store answers. It is called under mu.
func (s *Source) found() {
	if s.why != nil {
		s.cfg.Logger.Info("the store gives maps again", slog.Duration("after", time.Since(s.since)))
		s.why, s.since, s.stale = nil, time.Time{}, make(chan struct{})
	}
}

// findBack finds out what Watch says nothing of: that a store answers again whose map is still the same. Once at the
// beginning it also looks whether the store holds another map under the version of the last one, of which Watch is
// told only the number.
func (s *Source) findBack(ctx context.Context) {
	timer := time.NewTicker(recheck)
	defer timer.Stop()
	begun := make(chan struct{})
	close(begun)
	for why := (<-chan struct{})(begun); ; {
		select {
		case <-ctx.Done():
			return
		case <-why:
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s.mu.Lock()
		why = s.stale
		s.mu.Unlock()
		limited, cancel := context.WithTimeout(ctx, s.cfg.Limit)
		e, err := s.cfg.Store.Load(limited)
		cancel()
		if err == nil {
			s.back(ctx, e.Map)
		}
	}
}

// back takes a store for well that holds the last map. A newer one Watch tells of, or says what is wrong with it.
func (s *Source) back(ctx context.Context, m *shards.Map) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.Version() != m.Version() {
		return
	}
	if same(s.last, m) {
		s.found()
		return
	}
	s.noteLost(ctx, s.refused(&WentBackError{Seen: m.Version(), Found: m.Version()}))
}

// same reports whether two maps are written in the same way, or are both nil.
func same(a, b *shards.Map) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	textOfA, errOfA := a.Config().Shared().YAML()
	textOfB, errOfB := b.Config().Shared().YAML()
	return errOfA == nil && errOfB == nil && bytes.Equal(textOfA, textOfB)
}
