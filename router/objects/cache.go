package objects

import (
	"context"
	"encoding/binary"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kiloshard/kiloshard/shards"
)

// Cache keeps objects in front of the shards, as bytes that mean nothing to it: in memory, see [NewMemory], or in Redis, as
// redis_test.go has it. What it forgets, or fails to do, is read from the shards.
//
// An entry may be older than the object: a reader may bring one that was read before the last change. So a cache must drop
// each entry when it has reached an age of its choice, counted from the time given to Set: that is how old an answer can be.
// [Type.Update] reads the shard. A cache is safe for concurrent use, and is one type's own or has IDs for its keys.
type Cache interface {
	Get(ctx context.Context, ids []shards.ID) (map[shards.ID][]byte, error)
	Set(ctx context.Context, entries map[shards.ID][]byte, read time.Time) error // read is when reading them began
	Delete(ctx context.Context, id shards.ID) error
}

// entry is the time of a row, in microseconds, and its document.
func entry(r row) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(r.TS.UnixMicro())), r.Data...)
}

// cached adds to found what the cache has.
func (t *Type[T]) cached(ctx context.Context, ids []shards.ID, found map[shards.ID]Object[T]) error {
	if t.options.Cache == nil {
		return nil
	}
	entries, err := t.options.Cache.Get(ctx, ids)
	if err != nil {
		return ctx.Err() // a cache that is down is one that has nothing
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
		_ = t.options.Cache.Set(ctx, entries, read) // it is read again then
	}
}

// forget drops an object that has changed, or may have.
func (t *Type[T]) forget(ctx context.Context, id shards.ID) {
	if t.options.Cache != nil {
		_ = t.options.Cache.Delete(context.WithoutCancel(ctx), id) // it is as old as the cache lets it become
	}
}

// Memory is a [Cache] in memory, which drops the entries that were used least recently.
type Memory struct {
	age time.Duration
	all *lru.Cache[shards.ID, kept]
}

type kept struct {
	text []byte
	read time.Time
}

// NewMemory returns a cache of so many entries at most, none older than age. The error is that of a number below 1.
func NewMemory(entries int, age time.Duration) (*Memory, error) {
	all, err := lru.New[shards.ID, kept](entries)
	return &Memory{age, all}, err
}

// Get returns what is there and not too old.
func (m *Memory) Get(_ context.Context, ids []shards.ID) (map[shards.ID][]byte, error) {
	found := map[shards.ID][]byte{}
	for _, id := range ids {
		if k, ok := m.all.Get(id); ok && time.Since(k.read) < m.age {
			found[id] = k.text
		}
	}
	return found, nil
}

// Set keeps entries.
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
