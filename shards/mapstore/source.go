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

// SourceConfig is the config of a [Source].
type SourceConfig struct {
	Store Store // where maps come from; the caller closes it

	// Cluster is the cluster that maps must be of. Defaults to that of the first map.
	Cluster string

	// Cache is the path of a file that keeps the last map, to start from while the store is down. It must be in a
	// directory that others cannot write to. Defaults to none.
	Cache string

	// Lookup returns the variables in the DSNs of the cached copy, such as [os.LookupEnv].
	Lookup func(name string) (value string, ok bool)

	// Limit is how long Load waits for the store before it takes the cached copy. Defaults to 5 seconds.
	Limit time.Duration

	// Logger logs when the store stops and starts giving maps. Nil logs nothing.
	Logger *slog.Logger
}

// Source gives a service its maps: from a store, or from a copy of the last map while the store is down. It is safe for
// concurrent use.
//
// It never returns a map that cannot follow the last one: of another cluster, with another epoch or layout, of an older
// version, or another map under the version of the last one, as from a store that was restored to an old state or lost
// its newest changes in a failover. To accept such a map, delete the copy and restart the service.
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
	recheck            = time.Second // pause between attempts to reach a store that is down
)

// NewSource returns a source of maps. It does not read the store yet.
func NewSource(cfg SourceConfig) *Source {
	if cfg.Limit <= 0 {
		cfg.Limit = defaultSourceLimit
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Source{cfg: cfg, stale: make(chan struct{})}
}

// Format prints the name of the store for every verb, so that no DSN is printed.
func (s *Source) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "maps of %v", s.cfg.Store)
}

// Load returns the map of the store. If the store does not answer within the limit, or holds something that is not a map, it
// returns the cached copy, logs a warning, and [Source.Stale] returns the reason. Without a copy it returns the store's
// error.
//
// It returns a [WentBackError] or a [shards.ChangeError] if the map of the store cannot follow the copy.
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

// Stale returns since when the last map may be out of date, and why: the store does not answer, or holds something that is
// not a map, or a map that was refused. why is nil while the store works. That a store with the same map is back is noticed
// only during [Source.Watch].
func (s *Source) Stale() (since time.Time, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.why
}

// accept makes a map of the store the last one, and writes the copy.
func (s *Source) accept(m *shards.Map) error {
	cached, _ := s.copy()
	if m.Config().Cluster != s.cfg.Cluster && s.cfg.Cluster != "" {
		return s.refused(&shards.ChangeError{Field: "cluster", From: s.cfg.Cluster, To: m.Config().Cluster, Why: "this is the map of another cluster"})
	}
	if cached != nil {
		// Without a version, as in a file that was never a store, it is unknown which is newer.
		if v := m.Version(); v < cached.Version() || v == cached.Version() && v > 0 && !same(cached, m) {
			return s.refused(&WentBackError{Seen: cached.Version(), Found: m.Version()})
		}
		// The store has decided whether keys may move.
		if e := (*shards.ChangeError)(nil); errors.As(shards.CheckChange(cached, m), &e) && !e.MovesKeys {
			return s.refused(e)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.Version() > m.Version() { // another goroutine was faster
		return nil
	}
	s.last = m
	s.found()
	if err := s.keep(m); err != nil {
		s.cfg.Logger.Warn("the copy of the map was not written", slog.String("file", s.cfg.Cache), slog.Any("error", err))
	}
	return nil
}

// refused adds how to accept a map that was refused.
func (s *Source) refused(err error) error {
	if s.cfg.Cache == "" {
		return err
	}
	return fmt.Errorf("%w (to accept it, delete the copy of the last map, %s, and restart)", err, s.cfg.Cache)
}

// lost records that the store gives no map.
func (s *Source) lost(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLost(ctx, err)
}

// noteLost is lost; the caller holds mu.
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
		s.cfg.Logger.WarnContext(ctx, "the store gives no map: the last one stays in use", slog.Int("version", version), slog.Any("error", err))
	}
}

// found records that the store works. The caller holds mu.
func (s *Source) found() {
	if s.why != nil {
		s.cfg.Logger.Info("the store gives maps again", slog.Duration("after", time.Since(s.since)))
		s.why, s.since, s.stale = nil, time.Time{}, make(chan struct{})
	}
}

// findBack notices what Watch does not report: that a store answers again with the same map. At the beginning it also checks
// once whether the store holds another map under the version of the last one, of which Watch knows only the number.
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

// back records that the store works if it holds the last map. Watch reports a newer one, or what is wrong with it.
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

// same reports whether two maps have the same text, or are both nil.
func same(a, b *shards.Map) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	textOfA, errOfA := a.Config().Shared().YAML()
	textOfB, errOfB := b.Config().Shared().YAML()
	return errOfA == nil && errOfB == nil && bytes.Equal(textOfA, textOfB)
}
