package mapstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/document"
)

// mapStore is the [Store] over a documentStore: it turns documents into maps, checks changes, and limits requests.
type mapStore struct {
	store  documentStore
	docs   *document.Reader
	unset  *document.Reader // keeps unset variables
	limit  time.Duration
	feed   feed
	closed atomic.Bool
}

func newMapStore(s documentStore, docs *document.Reader, limit time.Duration) *mapStore {
	m := &mapStore{store: s, docs: docs, unset: docs.KeepUnset(), limit: limit}
	m.feed.follow = s.Follow
	m.feed.entry = func(v *backend.Version) (Entry, error) { return entryOf(v, docs) }
	return m
}

// Format prints the name of the store for every verb, so that it prints no password.
func (m *mapStore) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "store %s", m.store.String())
}

// entryOf returns the entry of a version, and ErrNoMap for nil.
func entryOf(v *backend.Version, docs *document.Reader) (Entry, error) {
	if v == nil {
		return Entry{}, ErrNoMap
	}
	found, err := docs.Map(v.Name, v.Number, v.Document)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Map: found, At: v.At, By: v.By, Why: v.Why, Role: v.Role}, nil
}

// Load implements [Store].
func (m *mapStore) Load(ctx context.Context) (Entry, error) {
	v, err := request(ctx, m, m.store.Load)
	if err != nil {
		return Entry{}, err
	}
	return entryOf(v, m.docs)
}

// Swap implements [Store].
func (m *mapStore) Swap(ctx context.Context, from int, next Change) (Entry, error) {
	v, err := request(ctx, m, func(ctx context.Context) (*backend.Version, error) {
		return m.store.Swap(ctx, from, m.propose(next))
	})
	if conflict := (*backend.ConflictError)(nil); errors.As(err, &conflict) {
		return Entry{}, &ConflictError{Wanted: from, Found: conflict.Found}
	}
	if err != nil {
		return Entry{}, err
	}
	return entryOf(v, m.unset)
}

// propose returns the version that a change makes of the current one.
func (m *mapStore) propose(next Change) backend.Propose {
	return func(now *backend.Version) (*backend.Version, error) {
		from, err := entryOf(now, m.unset)
		if err != nil && now != nil {
			return nil, err
		}
		made, text, err := next.check(m.docs, from.Map)
		if err != nil {
			return nil, err
		}
		return &backend.Version{Number: made.Version(), Document: text, By: next.By, Why: next.Why, Name: "the new map"}, nil
	}
}

// Check implements [Checker].
func (m *mapStore) Check(ctx context.Context, next Change) error {
	_, err := request(ctx, m, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, m.store.Check(ctx, m.propose(next))
	})
	return err
}

// History implements [Store].
func (m *mapStore) History(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for below := math.MaxInt; ; {
			page, pageErr := request(ctx, m, func(ctx context.Context) ([]*backend.Version, error) {
				return m.store.Page(ctx, below)
			})
			for _, v := range page {
				e, err := entryOf(v, m.unset)
				if !yield(e, err) || err != nil {
					return
				}
				below = v.Number
			}
			if pageErr != nil {
				yield(Entry{}, pageErr)
			}
			if pageErr != nil || len(page) == 0 {
				return
			}
		}
	}
}

// Watch implements [Store].
func (m *mapStore) Watch(ctx context.Context, after int) iter.Seq2[Entry, error] {
	return m.feed.watch(ctx, after)
}

// Close implements [Store].
func (m *mapStore) Close() error {
	m.closed.Store(true)
	m.feed.close()
	return m.store.Close()
}

// request calls fn within the limit, unless the store is closed.
func request[R any](ctx context.Context, m *mapStore, fn func(context.Context) (R, error)) (R, error) {
	var none R
	if m.closed.Load() {
		return none, ErrClosed
	}
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	answer, err := fn(ctx)
	if err != nil && m.closed.Load() && !errors.Is(err, ErrOutcomeUnknown) {
		return none, ErrClosed
	}
	return answer, err
}
