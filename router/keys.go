package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/directory"
	"github.com/kiloshard/kiloshard/shards"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// Nowhere is where a key is that belongs to no shard, for [Router.Assign].
const Nowhere = directory.Nowhere

var (
	// ErrNoDirectory says that the strategy of the map is arithmetic, in which no key can be put elsewhere.
	ErrNoDirectory = directory.ErrNone
	// ErrFull says that no open shard has room for another key.
	ErrFull = directory.ErrFull
	// ErrElsewhere says that a key is not in the shard that [Router.Assign] was given, so that nothing was changed.
	ErrElsewhere = directory.ErrElsewhere
	// ErrNeedsKey says that the strategy of the map takes new keys to a shard by the key alone.
	ErrNeedsKey = errors.New("the strategy chooses no shard without a key")
)

// ForKey returns the shard of a key, such as a user's ID or an address, by the map's strategy.
//
// With modulo, hash, range and id it is arithmetic on the map: it takes no lock, allocates nothing, and ctx means nothing to
// it; with id, where keys are IDs, it is [Router.ForID]. With a directory it may ask a host, until ctx ends, and may return an entry as old as [Config.DirectoryMaxAge].
//
// It returns [shards.ErrNoShard] for a key in no range, without an entry where the map says no other place, or that is no
// number where the strategy wants numbers, and [shards.ErrIsID] for an ID if the map refuses IDs as keys; with a directory the errors of a [Shard], and a [shards.FieldError] for a text
// of more than 1024 bytes or that is not UTF-8.
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

// inDirectory returns the shard of a key that may have an entry.
func (r *Router) inDirectory(ctx context.Context, key shards.Key) (Shard, error) {
	n, _, err := r.directory.Lookup(ctx, key)
	if err != nil {
		return Shard{}, err
	}
	return r.ForShard(n)
}

// ForNew returns the shard of a new key, such as a user who signs up. With a directory, a key without an entry is given a
// shard by the map's allocation, on a host that is not closed, and the directory remembers it: from then on each lookup
// of the key, in this process or another, returns that shard. However many ask at the same time, one shard is chosen. A key
// that has an entry keeps it. With the other strategies it is [Router.ForKey].
//
// Without a key it chooses an open shard in the same way, for a user whose number is an ID which that shard makes, as the
// default of a column or by [Shard.NextID]: with the strategy id, and with a directory where keys without an entry are IDs.
// The ID is the key from then on. Each call counts one key in the shard that it returns, whether a row is inserted or not.
// With other strategies the error is [ErrNeedsKey].
//
// Where the map says that keys without an entry are by another strategy, nothing tells an old key of that kind from a new
// one: ForNew is for keys that have no rows yet.
//
// No shard and no host gets more keys than its capacity. It returns [ErrFull] when no open shard has room, and otherwise
// the errors of [Router.ForKey]. When ctx ends, what has begun goes on: call ForNew again to learn which shard it is.
//
// The entries are in the table kiloshard_directory, the entry of a key in the shard that the hash of the key names, and
// move with it. The keys of a shard are counted in a row of its table kiloshard_usage: new keys of one shard wait for each
// other there for as long as a commit takes. A new key costs three statements: its entry is looked up, it is counted in its
// shard, its entry is written. A process that dies between the last two leaves a shard counted one key too high, never too
// low. The router reads the counts of all shards once in [Config.DirectoryMaxAge] and adds its own keys: what others add
// meanwhile costs evenness, not correctness.
func (r *Router) ForNew(ctx context.Context, key ...shards.Key) (Shard, error) {
	m := r.Map()
	var n shards.Number
	var err error
	switch {
	case len(key) > 1:
		return Shard{}, &shards.FieldError{Field: "key", Found: fmt.Sprintf("%d keys", len(key)), Expected: "one, or none"}
	case len(key) == 0 && !m.MakesKeys():
		return Shard{}, fmt.Errorf("strategy %s: %w; {by: id} does, and so does a directory with otherwise: {by: id}", m.Strategy(), ErrNeedsKey)
	case len(key) == 0:
		n, err = r.directory.Place(ctx)
	case m.HasDirectory():
		n, err = r.directory.Allocate(ctx, key[0])
	default:
		n, err = m.For(key[0])
	}
	if err != nil {
		return Shard{}, err
	}
	return r.ForShard(n)
}

// Assign moves a key by hand, whose rows its caller has moved: the directory says shard to afterwards. It does so only if
// the key is in shard from now, by its entry, or without one by the other strategy; [Nowhere] for a key without either.
// From and to may be the same, which writes down where the other strategy has put the key.
//
// It returns [ErrElsewhere] when the key is in another shard than from, [ErrFull] when the capacity of shard to is
// reached, [ErrNoDirectory] when the strategy is arithmetic, and [shards.ErrNoShard] for numbers that the map does not
// have. Nothing has changed then. After any other error the change may have been made. Once it has begun, the end of ctx
// does not stop it.
//
// This router goes by the new entry at once, others within their [Config.DirectoryMaxAge]. To move the rows of a key
// that is in use: stop its writers, copy its rows, Assign, wait for that time, let writers go on, delete the old rows.
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

// DirectoryStats are figures on the entries of a directory that a router keeps.
type DirectoryStats struct {
	Entries      int    // that are kept
	Hits, Misses uint64 // so far: how many times an entry was there when it was wanted, and was not
}

// DirectoryStats returns figures on the directory's entries. It returns false if the strategy is not a directory.
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

// entryStore is where a directory's entries are.
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
