package mapstore

import (
	"context"
	"iter"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Store keeps the map of one cluster and the history of its versions. All methods are safe for concurrent use.
//
// No method waits for a store that does not answer longer than [Options.Limit] or the life of ctx.
type Store interface {
	// Load returns the current map. It returns [ErrNoMap] for a store that holds none yet, and a [shards.FieldError] for
	// a document that is not a map, or not one of this cluster.
	Load(ctx context.Context) (Entry, error)

	// Swap makes next the map if the current one has version from, 0 for none, and returns it with its new version.
	// Unset variables in its DSNs stay as they are written.
	//
	// It changes nothing, and returns: a [ConflictError] if the map is at another version; the [shards.ChangeError] of
	// a change that [shards.CheckChange] refuses; the [shards.FieldError] of a config that is not a map, or of a DSN
	// with a password in it; or any other error that is not ErrOutcomeUnknown, such as that the store does not answer.
	//
	// [ErrOutcomeUnknown] says that a connection was lost after the change was sent, and that no answer came within the
	// limit. The store may have made the change, or may still make it within moments. Load or History show the outcome.
	Swap(ctx context.Context, from int, next Change) (Entry, error)

	// History yields the versions of the map, newest first. Unset variables in DSNs stay as they are written. It ends
	// with the first error. An empty store yields nothing.
	History(ctx context.Context) iter.Seq2[Entry, error]

	// Watch yields the map whenever it is newer than version after, including the current one. Versions may be skipped;
	// they never repeat or go back. If the store holds an older version than one that was seen, or than after, or
	// another map under the last version yielded, it yields a [WentBackError], once. It waits for a store that holds no
	// map.
	//
	// While the store does not answer, or holds something that is not a map, it yields errors, at most one for each
	// attempt to reach it, and continues. It ends without an error when ctx does or the loop is left, and with
	// [ErrClosed] when the store is closed.
	Watch(ctx context.Context, after int) iter.Seq2[Entry, error]

	// Close releases what the store holds, and waits for that. All methods return [ErrClosed] afterwards.
	Close() error
}

// Change is a new map, with its author and the reason.
type Change struct {
	// Config is the new map. Swap ignores its Store, since a document does not name its own store, and its Version,
	// except from 0: the first version is one more, so that versions keep rising when a map moves from one store to
	// another.
	Config shards.Config
	By     string // at most MaxNote bytes
	Why    string // likewise

	// KeysMoved allows a change that [shards.CheckChange] refuses only because keys would be in other shards
	// ([shards.ChangeError.MovesKeys]): the caller has moved their rows, or knows that there are none.
	KeysMoved bool

	// NoShards allows any change of the same cluster's map: the caller has found no shard of the current one anywhere.
	NoShards bool
}

// Entry is one version of the map.
type Entry struct {
	Map *shards.Map // with its version
	At  time.Time   // when it became the map, by the store's clock
	By  string      // as its author claimed
	Why string      // likewise

	// Role is the role that made it. The control database sets it, so that an author cannot claim another one. It is
	// empty in other stores.
	Role string
}

// version returns the entry's version, 0 for none.
func (e Entry) version() int {
	if e.Map == nil {
		return 0
	}
	return e.Map.Version()
}
