package router_test

import (
	"context"
	"iter"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// source yields the maps that are put into it.
type source struct {
	mu   sync.Mutex
	m    *shards.Map
	err  error
	news chan struct{} // closed when there is something new
}

func newSource(m *shards.Map) *source { return &source{m: m, news: make(chan struct{})} }

// follow returns a router that follows the source.
func (s *source) follow(ctx context.Context, t *testing.T) *router.Router {
	t.Helper()
	r, err := router.New(ctx, router.Config{Maps: s, Failover: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func (s *source) put(m *shards.Map, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m != nil {
		s.m = m
	}
	s.err = err
	close(s.news)
	s.news = make(chan struct{})
}

func (s *source) Load(context.Context) (*shards.Map, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m, s.err
}

func (s *source) Watch(ctx context.Context, after int) iter.Seq2[*shards.Map, error] {
	return func(yield func(*shards.Map, error) bool) {
		for ctx.Err() == nil {
			s.mu.Lock()
			m, err, news := s.m, s.err, s.news
			s.mu.Unlock()
			if m.Version() > after || err != nil {
				after = m.Version()
				if !yield(m, err) {
					return
				}
			}
			select {
			case <-news:
			case <-ctx.Done():
			}
		}
	}
}
