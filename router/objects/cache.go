package objects

import (
	"context"
	"encoding/binary"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kiloshard/kiloshard/shards"
)

// Cache caches encoded objects: in memory, see [NewMemory], or in Redis, as in redis_test.go. Objects that it does not return are
// read from their shards.
//
// An entry may be older than the object: a reader may store what it read before the last change. So a cache must drop each
// entry at some age, counted from the time passed to Set. An answer is never older than that. [Type.Update] does not use the
// cache. A cache must be safe for concurrent use. Several types may share one, because the IDs of their objects differ.
type Cache interface {
	Get(ctx context.Context, ids []shards.ID) (map[shards.ID][]byte, error)
	Set(ctx context.Context, entries map[shards.ID][]byte, read time.Time) error // read is the time when the read began
	Delete(ctx context.Context, id shards.ID) error
}

// entry is the encoding of an object: the time of its row, in microseconds, and its document.
func entry(r row) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(r.TS.UnixMicro())), r.Data...)
}

// cached adds the objects in the cache to found.
func (t *Type[T]) cached(ctx context.Context, ids []shards.ID, found map[shards.ID]Object[T]) error {
	if t.options.Cache == nil {
		return nil
	}
	entries, err := t.options.Cache.Get(ctx, ids)
	if err != nil {
		return ctx.Err() // without the cache, all objects are read from the shards
	}
	for _, id := range ids {
		e, ok := entries[id]
		if !ok || len(e) < 8 {
			continue
		}
		if fields, err := t.decode(e[8:]); err == nil {
			found[id] = Object[T]{id, fields, time.UnixMicro(int64(binary.BigEndian.Uint64(e)))}
		}
	}
	return nil
}

func (t *Type[T]) remember(ctx context.Context, entries map[shards.ID][]byte, read time.Time) {
	if t.options.Cache != nil && len(entries) > 0 {
		_ = t.options.Cache.Set(ctx, entries, read) // after an error, the next read tries again
	}
}

// forget drops an object from the cache after a change, or after an attempt.
func (t *Type[T]) forget(ctx context.Context, id shards.ID) {
	if t.options.Cache != nil {
		_ = t.options.Cache.Delete(context.WithoutCancel(ctx), id) // after an error, the entry stays until the cache drops it
	}
}

// Memory is a [Cache] in memory. When it is full, it drops the least recently used entry.
type Memory struct {
	age time.Duration
	all *lru.Cache[shards.ID, kept]
}

type kept struct {
	text []byte
	read time.Time
}

// NewMemory returns a cache for this many entries, which it drops when they are older than age. It returns an error if
// entries is less than 1.
func NewMemory(entries int, age time.Duration) (*Memory, error) {
	all, err := lru.New[shards.ID, kept](entries)
	return &Memory{age, all}, err
}

// Get returns the entries that are not too old.
func (m *Memory) Get(_ context.Context, ids []shards.ID) (map[shards.ID][]byte, error) {
	found := map[shards.ID][]byte{}
	for _, id := range ids {
		if k, ok := m.all.Get(id); ok && time.Since(k.read) < m.age {
			found[id] = k.text
		}
	}
	return found, nil
}

// Set stores entries.
func (m *Memory) Set(_ context.Context, entries map[shards.ID][]byte, read time.Time) error {
	for id, text := range entries {
		m.all.Add(id, kept{text, read})
	}
	return nil
}

// Delete drops an entry.
func (m *Memory) Delete(_ context.Context, id shards.ID) error {
	m.all.Remove(id)
	return nil
}
