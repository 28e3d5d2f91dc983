package mapstore

import (
	"errors"
	"fmt"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// ErrNoMap says that a store holds no map yet.
var ErrNoMap = errors.New("the store holds no map")

// ErrClosed says that a store is closed.
var ErrClosed = errors.New("the store is closed")

// ErrNoAnswer says that a store did not answer within [Options.Limit], or before the context's deadline.
var ErrNoAnswer = backend.ErrNoAnswer

// ErrOutcomeUnknown says that a change was sent to the store and no answer came: the store may or may not have made it.
var ErrOutcomeUnknown = backend.ErrOutcomeUnknown

// ConflictError says that the map is not at the version that a change expects.
type ConflictError struct {
	Wanted int // the version that the change follows
	Found  int // the version of the store, 0 for none
}

// Error names both versions.
func (e *ConflictError) Error() string {
	if e.Found == 0 {
		return fmt.Sprintf("the store holds no version of the map yet, not version %d", e.Wanted)
	}
	return fmt.Sprintf("the map is at version %d, not %d: somebody else changed it", e.Found, e.Wanted)
}

// WentBackError says that a store holds an older version than before, or another map under the same version: it was
// restored to an old state, or is another store.
type WentBackError struct {
	Seen  int // the newest version that was seen
	Found int // the version of the store, 0 for none
}

// Error names both versions.
func (e *WentBackError) Error() string {
	found := fmt.Sprintf("version %d", e.Found)
	switch e.Found {
	case 0:
		found = "no version of the map"
	case e.Seen:
		found = fmt.Sprintf("another version %d", e.Found)
	}
	return fmt.Sprintf("the store holds %s after version %d was seen: it was restored to an old state, or is another store", found, e.Seen)
}

// IsRefusal reports whether an error of [Store.Swap] or [Checker.Check] says that the store refuses the change: it
// would refuse the same change again. After any other error, such as a conflict, no answer, or a failure to connect,
// another attempt may succeed.
func IsRefusal(err error) bool { return backend.IsRefusal(err) && !errors.Is(err, ErrOutcomeUnknown) }
