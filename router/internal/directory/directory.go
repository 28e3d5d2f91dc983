package directory

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// Package router exports and documents these sentinels.
var (
	ErrNone      = errors.New("the strategy is not a directory")
	ErrFull      = errors.New("no room for another key")
	ErrElsewhere = errors.New("the key is in another shard")
)

// Nowhere stands for no shard in [Directory.Assign].
const Nowhere shards.Number = -1

const (
	defaultEntries = 100_000
	defaultMaxAge  = time.Minute
	// settleLimit is the time limit for cleaning up after a failure.
	settleLimit = 5 * time.Second
)

// Store stores entries and counts. Its methods run a single statement in the shard with the given number. Their errors are
// those of a router.Shard.
type Store interface {
	// Map returns the current map.
	Map() *shards.Map
	QueryRow(ctx context.Context, n shards.Number, query string, args ...any) pgx.Row
	Query(ctx context.Context, n shards.Number, query string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, n shards.Number, query string, args ...any) (pgconn.CommandTag, error)
}

// Config is the config of a [Directory].
type Config struct {
	Store   Store
	Entries int           // size of the LRU cache of entries; defaults to 100,000
	MaxAge  time.Duration // how long a cached entry is valid; defaults to one minute
	Logger  *slog.Logger  // logs failures to count keys; nil logs nothing
}

// Directory looks up, allocates and changes the shards of keys. It is safe for concurrent use. It reads the strategy from
// the Store's map at each call. The strategy must be one that allocates; only the directory strategy has entries.
type Directory struct {
	store   Store
	maxAge  time.Duration
	lookups *group
	changes *group // allocations and assignments
	recount *group
	counts  *counts

	allocating atomic.Pointer[allocator] // for the current map

	hits, misses atomic.Uint64 // of the cache

	mu      sync.Mutex
	cache   *lru.Cache[string, cached] // written under mu
	seed    maphash.Seed
	written [1024]uint64 // number of changes that this directory made, by the hash of the key; guarded by mu
}

// New returns a directory with an empty cache. The caller must close it.
func New(cfg Config) *Directory {
	if cfg.Entries == 0 {
		cfg.Entries = defaultEntries
	}
	if cfg.MaxAge == 0 {
		cfg.MaxAge = defaultMaxAge
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cache, err := lru.New[string, cached](cfg.Entries)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return &Directory{
		store: cfg.Store, maxAge: cfg.MaxAge, cache: cache, seed: maphash.MakeSeed(),
		lookups: newGroup(), changes: newGroup(), recount: newGroup(), counts: &counts{cfg.Store, cfg.Logger},
	}
}

// Close cancels running work and waits for it. Later calls that need a host fail with why.
func (d *Directory) Close(why error) {
	d.lookups.close(why)
	d.changes.close(why)
	d.recount.close(why)
}

// How is how [Directory.Lookup] found the shard of a key.
type How int

// The ways to find the shard of a key.
const (
	Cached    How = iota // from a cached entry
	Found                // from an entry that was queried
	Otherwise            // from the second strategy: the key has no entry
)

// Lookup returns the shard of a key, and how it found it. ctx governs the wait. If ctx ends, the query continues for other
// callers that wait for the same key. The error is that of [shards.Map.Otherwise] for a key without an entry, a
// [shards.FieldError] for a key that cannot have one, or that of the shard that stores the entry.
func (d *Directory) Lookup(ctx context.Context, key shards.Key) (shards.Number, How, error) {
	text, err := textOf(key)
	if err != nil {
		return 0, 0, err
	}
	if e, ok := d.known(text); ok {
		return e.shard, Cached, nil
	}
	e, err := d.lookups.share(ctx, text, func(ctx context.Context) (entry, error) { return d.read(ctx, text) })
	switch {
	case err != nil:
		return 0, 0, err
	case e.found:
		return e.shard, Found, nil
	}
	n, err := d.store.Map().Otherwise(key)
	return n, Otherwise, err
}

// Stats returns the number of cached entries, and the hits and misses of the cache.
func (d *Directory) Stats() (entries int, hits, misses uint64) {
	return d.cache.Len(), d.hits.Load(), d.misses.Load()
}
