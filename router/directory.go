package router

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

const (
	defaultDirectoryCache  = 100_000
	defaultDirectoryMaxAge = time.Minute
)

// ErrNoDirectory says that the strategy of the map is arithmetic, in which no key can be put elsewhere.
var ErrNoDirectory = errors.New("the strategy is no directory")

// directory is what a router knows of the entries that say where keys are. An entry stands in the table
// kiloshard_directory of the shard that [shards.Map.EntryShard] names.
type directory struct {
	router  *Router
	maxAge  time.Duration
	lookups *flights
	news    *flights
	counts  *flights
	places  *places

	seed         maphash.Seed
	hits, misses atomic.Uint64 // of the cache

	mu      sync.Mutex
	cache   *lru.Cache[string, cached] // written under mu
	changes [1024]uint64               // how many entries this router has changed, by the keys' hashes; guarded by mu
}

// cached is an entry as it was read.
type cached struct {
	shard shards.Number
	read  time.Time // before it was asked for
}

func newDirectory(r *Router, cfg Config) *directory {
	if cfg.DirectoryCache == 0 {
		cfg.DirectoryCache = defaultDirectoryCache
	}
	if cfg.DirectoryMaxAge == 0 {
		cfg.DirectoryMaxAge = defaultDirectoryMaxAge
	}
	cache, err := lru.New[string, cached](cfg.DirectoryCache)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return &directory{
		router: r, maxAge: cfg.DirectoryMaxAge, cache: cache, seed: maphash.MakeSeed(),
		lookups: newFlights(), news: newFlights(), counts: newFlights(), places: &places{r, cfg.logger()},
	}
}

func (d *directory) close() {
	d.lookups.close()
	d.news.close()
	d.counts.close()
}

// on returns the handle of a shard that an entry or the arithmetic names.
func (d *directory) on(n shards.Number) (Shard, error) { return d.router.ForShard(n) }

// shard returns where a key is.
func (d *directory) shard(ctx context.Context, key shards.Key) (Shard, error) {
	text, err := keyText(key)
	if err != nil {
		return Shard{}, err
	}
	a, _, err := d.find(ctx, text)
	if err != nil {
		return Shard{}, err
	}
	if !a.found {
		if a.shard, err = d.router.Map().Otherwise(key); err != nil {
			return Shard{}, err
		}
	}
	return d.on(a.shard)
}

// find returns the entry of a key from the cache, or else asks for it, once for all who want it at the same time.
func (d *directory) find(ctx context.Context, key string) (a spot, fromCache bool, err error) {
	if a, ok := d.known(key); ok {
		return a, true, nil
	}
	a, err = d.lookups.share(ctx, key, func(ctx context.Context) (spot, error) { return d.read(ctx, key) })
	return a, false, err
}

// known returns the entry of a key if it is in the cache and young enough.
func (d *directory) known(key string) (spot, bool) {
	c, ok := d.cache.Get(key)
	if !ok || time.Since(c.read) >= d.maxAge {
		d.misses.Add(1)
		return spot{}, false
	}
	d.hits.Add(1)
	return spot{c.shard, true}, true
}

// read asks for the entry of a key, and remembers it. That there is none is not remembered: a key that was new a
// moment ago would be taken to a shard where it is not.
func (d *directory) read(ctx context.Context, key string) (spot, error) {
	const query = `select shard from kiloshard_directory where key = $1`
	changes := d.changesOf(key)
	d.mu.Lock()
	before := *changes
	d.mu.Unlock()
	start := time.Now()
	s, err := d.holder(key)
	if err != nil {
		return spot{}, err
	}
	var n shards.Number
	err = s.QueryRow(ctx, query, key).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return spot{}, nil
	}
	if err != nil {
		return spot{}, lacking(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if *changes == before { // else it may be the entry before the change
		d.cache.Add(key, cached{n, start})
	}
	return spot{n, true}, nil
}

// remember keeps an entry that this router has just written.
func (d *directory) remember(key string, n shards.Number) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.changesOf(key)++
	d.cache.Add(key, cached{n, time.Now()})
	d.lookups.group.Forget(key) // who asks from now on must not join those who asked before
	d.news.group.Forget(key)
}

// forget drops an entry that may have changed.
func (d *directory) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.changesOf(key)++
	d.cache.Remove(key)
	d.lookups.group.Forget(key)
}

// changesOf returns the count of changes of a key, which it shares with some others.
func (d *directory) changesOf(key string) *uint64 {
	return &d.changes[maphash.String(d.seed, key)%uint64(len(d.changes))]
}

// holder returns the shard that holds the entry of a key.
func (d *directory) holder(key string) (Shard, error) {
	return d.on(d.router.Map().EntryShard(shards.TextKey(key)))
}

// insert writes the entry of a key unless there is one. written tells whether it did.
func (d *directory) insert(ctx context.Context, key string, n shards.Number) (written bool, err error) {
	const query = `insert into kiloshard_directory (key, shard) values ($1, $2) on conflict (key) do nothing`
	s, err := d.holder(key)
	if err != nil {
		return false, err
	}
	tag, err := s.Exec(ctx, query, key, n)
	return tag.RowsAffected() == 1, lacking(err)
}

// replace changes the entry of a key if it is as expected. written tells whether it did.
func (d *directory) replace(ctx context.Context, key string, from, to shards.Number) (written bool, err error) {
	const query = `update kiloshard_directory set shard = $3, since = now() where key = $1 and shard = $2`
	s, err := d.holder(key)
	if err != nil {
		return false, err
	}
	tag, err := s.Exec(ctx, query, key, from, to)
	return tag.RowsAffected() == 1, lacking(err)
}

// lacking says what to do about tables that are not there.
func lacking(err error) error {
	if sqlState(err) == "42P01" {
		return fmt.Errorf("%w; kiloshard create makes the tables of a directory", err)
	}
	return err
}
