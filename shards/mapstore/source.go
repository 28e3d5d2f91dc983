package mapstore

import (
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
	why   error         // nil while the store works
	stale chan struct{} // closed when why is set
}

const (
	defaultSourceLimit = 5 * time.Second
	recheckInterval    = time.Second // between loads while the store is down
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

// Load returns the map of the store. If the store does not answer within the limit, or holds something that is not a
// map, it returns the cached copy, logs a warning, and [Source.Stale] returns the reason. Without a copy it returns the
// store's error.
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
		s.markStale(context.WithoutCancel(ctx), err)
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
		var recovery sync.WaitGroup
		defer recovery.Wait()
		defer cancel()
		recovery.Go(func() { s.watchRecovery(ctx) })
		for e, err := range s.cfg.Store.Watch(ctx, after) {
			if err == nil {
				err = s.accept(e.Map)
			}
			if err != nil {
				e.Map = nil
				s.markStale(ctx, err)
			}
			if !yield(e.Map, err) {
				return
			}
		}
	}
}

// Stale returns since when the last map may be out of date, and why: the store does not answer, or holds something that
// is not a map, or a map that was refused. why is nil while the store works. Only during [Source.Watch] does it become
// nil when the store is back with the same map.
func (s *Source) Stale() (since time.Time, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.why
}
