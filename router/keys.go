package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/directory"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/shards"
)

// Nowhere is the shard number of a key that has no shard yet, for [Router.Assign].
const Nowhere = directory.Nowhere

var (
	// ErrNoDirectory says that the map's strategy is arithmetic, so that no key can be assigned to another shard.
	ErrNoDirectory = directory.ErrNone
	// ErrFull says that no open shard has room for another key.
	ErrFull = directory.ErrFull
	// ErrElsewhere says that a key is not in the shard that [Router.Assign] was to move it from. Nothing has changed.
	ErrElsewhere = directory.ErrElsewhere
	// ErrNeedsKey says that the map's strategy cannot choose a shard without a key.
	ErrNeedsKey = errors.New("the strategy chooses no shard without a key")
)

// ForKey returns the shard of a key, such as a user's ID or an address, by the map's strategy.
//
// With modulo, hash, range and id it is arithmetic on the map: it takes no lock, allocates nothing and ignores ctx. With
// id, where keys are IDs, it is the same as [Router.ForID]. With a directory it may query a host, until ctx ends, and may
// return an entry as old as [Config.DirectoryMaxAge].
//
// It returns [shards.ErrNoShard] if no range holds the key, if the key has no entry and the map has no other strategy for
// such keys, or if the strategy needs a number and the key is not one. It returns [shards.ErrIsID] for an ID if the map
// refuses IDs as keys. With a directory it also returns the errors of a [Shard], and a [shards.FieldError] for a text key
// that is longer than 1024 bytes or not UTF-8.
func (r *Router) ForKey(ctx context.Context, key shards.Key) (Shard, error) {
	now := r.now.Load()
	if now.shards.HasDirectory() {
		return r.inDirectory(ctx, key)
	}
	n, err := now.shards.For(key)
	if err != nil {
		return Shard{}, err
	}
	return now.on(n), nil
}

// inDirectory returns the shard of a key that may have a directory entry.
func (r *Router) inDirectory(ctx context.Context, key shards.Key) (Shard, error) {
	n, _, err := r.directory.Lookup(ctx, key)
	if err != nil {
		return Shard{}, err
	}
	return r.ForShard(n)
}

// ForNew returns the shard of a new key, such as a user who signs up. With a directory, the map's allocation chooses a
// shard for a key without an entry, on a host that is not closed, and ForNew writes the entry. From then on every lookup
// of the key, in this process or another, returns that shard. Concurrent calls for one key get the same shard. A key that
// has an entry keeps it. With the other strategies ForNew is the same as [Router.ForKey].
//
// If the map uses another strategy for keys without an entry, ForNew cannot tell an old key of that kind from a new one.
// Call it only for keys that have no rows yet.
//
// No shard and no host gets more keys than its capacity. ForNew returns [ErrFull] when no open shard has room, and
// otherwise the errors of [Router.ForKey]. The end of ctx does not stop an allocation that has begun: call ForNew again to
// learn the shard.
//
// The entries are in the table kiloshard_directory. The hash of a key names the shard that holds its entry, and the entry
// moves with that shard. Each shard counts its keys in a row of its table kiloshard_usage, where new keys of one shard
// wait for each other for as long as a commit takes. A new key costs three statements: look up its entry, count it in its
// shard, write its entry. If the process dies between the last two, the count is one too high, never too low. The router
// reads the counts of all shards once per [Config.DirectoryMaxAge] and adds its own keys. Keys that others add in between
// make the shards less even, but break nothing.
func (r *Router) ForNew(ctx context.Context, key shards.Key) (Shard, error) {
	m := r.Map()
	if !m.HasDirectory() {
		return r.ForKey(ctx, key)
	}
	n, err := r.directory.Allocate(ctx, key)
	if err != nil {
		return Shard{}, err
	}
	return r.ForShard(n)
}

// NewShard returns an open shard for a new key that is an ID: the shard makes it, by the default of a column or by
// [Shard.NextID]. It chooses as [Router.ForNew] does and counts one key in the shard, even if no row is inserted.
//
// This works with the strategy id, and with a directory where keys without an entry are IDs; with other strategies the
// error is [ErrNeedsKey]. The other errors are those of [Router.ForNew].
func (r *Router) NewShard(ctx context.Context) (Shard, error) {
	m := r.Map()
	if !m.MakesKeys() {
		return Shard{}, fmt.Errorf("strategy %s: %w; {by: id} does, and so does a directory with otherwise: {by: id}", m.Strategy(), ErrNeedsKey)
	}
	n, err := r.directory.Place(ctx)
	if err != nil {
		return Shard{}, err
	}
	return r.ForShard(n)
}

// Assign changes the directory entry of a key from one shard to another. The caller moves the rows. Assign changes the
// entry only if the key is in shard from now: by its entry or, if it has none, by the other strategy. Pass [Nowhere] as
// from for a key that has neither. If from and to are the same, Assign writes an entry for the shard that the other
// strategy gives the key.
//
// It returns [ErrElsewhere] when the key is not in shard from, [ErrFull] when shard to has reached its capacity,
// [ErrNoDirectory] when the strategy is arithmetic, and [shards.ErrNoShard] for numbers that the map does not have. After
// these errors nothing has changed; after any other error the entry may have changed. Once the change has begun, the end
// of ctx does not stop it.
//
// This router uses the new entry at once, other routers within their [Config.DirectoryMaxAge]. To move the rows of a key
// that is in use: stop its writers, copy its rows, call Assign, wait for that time, let the writers continue, and delete
// the old rows.
func (r *Router) Assign(ctx context.Context, key shards.Key, from, to shards.Number) error {
	m := r.Map()
	if !m.HasDirectory() {
		return fmt.Errorf("strategy %s: %w", m.Strategy().By, ErrNoDirectory)
	}
	for _, n := range []shards.Number{from, to} {
		if !m.Has(n) && (n == to || n != Nowhere) {
			return noShard(n, m)
		}
	}
	return r.directory.Assign(ctx, key, from, to)
}

// DirectoryStats are counts of a router's cache of directory entries.
type DirectoryStats struct {
	Entries      int    // entries in the cache now
	Hits, Misses uint64 // lookups so far that found the entry in the cache, and that did not
}

// DirectoryStats returns the counts of the directory's cache. It returns false if the strategy is not a directory.
func (r *Router) DirectoryStats() (DirectoryStats, bool) {
	if !r.Map().HasDirectory() {
		return DirectoryStats{}, false
	}
	entries, hits, misses := r.directory.Stats()
	return DirectoryStats{entries, hits, misses}, true
}

// newDirectory returns the directory of a router.
func newDirectory(r *Router, cfg Config) *directory.Directory {
	return directory.New(directory.Config{
		Store: entryStore{r}, Entries: cfg.DirectoryCache, MaxAge: cfg.DirectoryMaxAge, Logger: cfg.logger(),
	})
}

// entryStore runs the directory's statements on the shards that hold its entries.
type entryStore struct{ *Router }

func (s entryStore) QueryRow(ctx context.Context, n shards.Number, query string, args ...any) pgx.Row {
	rows, _ := s.Query(ctx, n, query, args...)
	return session.Row{Rows: rows}
}

func (s entryStore) Query(ctx context.Context, n shards.Number, query string, args ...any) (pgx.Rows, error) {
	shard, err := s.ForShard(n)
	if err != nil {
		return session.FailedRows(err), err
	}
	return shard.Query(ctx, query, args...)
}

func (s entryStore) Exec(ctx context.Context, n shards.Number, query string, args ...any) (pgconn.CommandTag, error) {
	shard, err := s.ForShard(n)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return shard.Exec(ctx, query, args...)
}
