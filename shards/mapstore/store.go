package mapstore

import (
	"context"
	"iter"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Store keeps the map of one cluster and the history of its versions. All methods are safe for concurrent use.
//
// No method waits for a store that does not answer longer than [Options.Limit], or than ctx lasts.
type Store interface {
	// Load returns the map as it is now. It returns [ErrNoMap] for a store that holds none yet, and the
	// [shards.FieldError] of a document that is no map, or not one of this cluster.
	Load(ctx context.Context) (Entry, error)

	// Swap makes next the map if the present one has version from, 0 for none at all, and returns it with its new
	// version. Variables in its DSNs that are not set stay as they are written.
	//
	// It changes nothing, and returns: a [ConflictError] when the map is at another version; the [shards.ChangeError] of
	// a change that [shards.CheckChange] refuses; the [shards.FieldError] of a config that no map can be made of, and of
	// a DSN with a password in it; or any other error that is not ErrOutcomeUnknown, such as that nobody answers.
	//
	// [ErrOutcomeUnknown] alone leaves open whether the change was made, or still will be within moments: a connection
	// was lost after the change was sent, and nobody answered until the end of the limit. Load or History tell.
	Swap(ctx context.Context, from int, next Change) (Entry, error)

	// History yields the versions of the map, newest first. Variables in DSNs that are not set stay as they are written.
	// It ends with the first error. An empty store yields nothing.
	History(ctx context.Context) iter.Seq2[Entry, error]

	// Watch yields the map whenever it is newer than version after, the present one at once if it is. Versions may be
	// skipped, never repeated, and never go back: of a store that holds an older version than one that was seen, or than
	// after, or another map as the version that it yielded last, it yields a [WentBackError], once. A store that holds no map is waited for.
	//
	// While the store does not answer, or holds what is no map, it yields errors, at most one for each attempt to reach
	// it, and goes on. It ends when ctx does, without an error, when the loop is left, or when the store is closed, then
	// with [ErrClosed].
	Watch(ctx context.Context, after int) iter.Seq2[Entry, error]

	// Close ends what the store holds open, and waits for that. All methods return [ErrClosed] afterwards.
	Close() error
}

// Change is a map to be, and who makes it and why.
type Change struct {
	// Config is the map to be. Its Store means nothing: a document in a store does not say where it is. Its Version means
	// nothing either, except to [Store.Swap] from 0: the first version is one more, so that a map that moves from one
	// store to another goes on rising.
	Config shards.Config
	By     string
	Why    string

	// KeysMoved lets a change pass that [shards.CheckChange] refuses for nothing but that keys would be in other shards
	// ([shards.ChangeError.MovesKeys]): whoever makes it has moved their rows, or knows that there are none.
	KeysMoved bool

	// NoShards lets any change of the same cluster's map pass: whoever makes it has found no shard of the present one anywhere.
	NoShards bool
}

// Entry is one version of the map.
type Entry struct {
	Map *shards.Map // with its version
	At  time.Time   // when it became the map, by the store's clock
	By  string      // as whoever made it says
	Why string      // likewise

	// Role made it, as the control database says, which keeps others from choosing it. It is empty in other stores.
	Role string
}

// version returns the entry's version, 0 for none.
func (e Entry) version() int {
	if e.Map == nil {
		return 0
	}
	return e.Map.Version()
}
