package directory

import (
	"hash/maphash"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// cached is a cached entry.
type cached struct {
	shard shards.Number
	read  time.Time // when the query was sent
}

// known returns the entry of a key if it is cached and not too old.
func (d *Directory) known(key string) (entry, bool) {
	c, ok := d.cache.Get(key)
	if !ok || time.Since(c.read) >= d.maxAge {
		d.misses.Add(1)
		return entry{}, false
	}
	d.hits.Add(1)
	return entry{c.shard, true}, true
}

// keep caches an entry whose query was sent at asked. written is the count of changes at that time.
func (d *Directory) keep(key string, n shards.Number, asked time.Time, written uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *d.changesOf(key) == written { // otherwise the entry may be older than a change
		d.cache.Add(key, cached{n, asked})
	}
}

// remember caches an entry that this directory has just written.
func (d *Directory) remember(key string, n shards.Number) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.changesOf(key)++
	d.cache.Add(key, cached{n, time.Now()})
	d.lookups.calls.Forget(key) // later callers must not share the result of an earlier query
	d.changes.calls.Forget(key)
}

// forget drops an entry that may have changed.
func (d *Directory) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.changesOf(key)++
	d.cache.Remove(key)
	d.lookups.calls.Forget(key)
}

func (d *Directory) writes(key string) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *d.changesOf(key)
}

// changesOf returns the count of changes of a key. Some keys share a count. The caller holds mu.
func (d *Directory) changesOf(key string) *uint64 {
	return &d.written[maphash.String(d.seed, key)%uint64(len(d.written))]
}
