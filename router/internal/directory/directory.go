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

// The sentinels that package router exports, where each is documented.
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

// Store is where entries and counts are. Its methods take the number of a shard, run single statements in it, and return
// the errors of a shard of package router.
type Store interface {
	// Map returns the current map.
	Map() *shards.Map
	QueryRow(ctx context.Context, n shards.Number, query string, args ...any) pgx.Row
	Query(ctx context.Context, n shards.Number, query string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, n shards.Number, query string, args ...any) (pgconn.CommandTag, error)
}

// Config says what a directory needs.
type Config struct {
	Store   Store
	Entries int           // most entries in memory, the last used ones; defaults to 100,000
	MaxAge  time.Duration // how long an entry is used after it was read; defaults to one minute
	Logger  *slog.Logger  // logs failures of counts; nil logs nothing
}

// Directory is safe for concurrent use. Its strategy, read from the Store's map at each call, must be one
// that allocates; only a directory has entries.
type Directory struct {
	store   Store
	maxAge  time.Duration
	lookups *group
	changes *group // allocations, and assignments
	recount *group
	counts  *counts

	allocating atomic.Pointer[allocator] // for the current map

	hits, misses atomic.Uint64 // of the cache

	mu      sync.Mutex
	cache   *lru.Cache[string, cached] // written under mu
	seed    maphash.Seed
	written [1024]uint64 // how many entries this directory has changed, by the keys' hashes; guarded by mu
}

// New returns a directory without entries in memory. It must be closed.
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

// Close cancels what is under way, and waits for it. Later calls that need a host fail with why.
func (d *Directory) Close(why error) {
	d.lookups.close(why)
	d.changes.close(why)
	d.recount.close(why)
}

// How is how [Directory.Lookup] knows the shard of a key.
type How int

// How a shard is known.
const (
	Cached    How = iota // by an entry in memory
	Found                // by an entry that was read
	Otherwise            // by the second strategy: there is no entry
)

// Lookup returns the shard of a key, and how it is known. ctx governs the wait; the query continues for others that wait for
// the same key. The error is that of [shards.Map.Otherwise] for a key without an entry, a [shards.FieldError] for one that
// cannot have an entry, or that of the shard that would hold it.
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

// Stats returns the number of entries in memory, and how often a lookup found one there or not.
func (d *Directory) Stats() (entries int, hits, misses uint64) {
	return d.cache.Len(), d.hits.Load(), d.misses.Load()
}
