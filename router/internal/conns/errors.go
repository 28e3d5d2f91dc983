package conns

import (
	"errors"
	"fmt"
)

// ErrOtherServer says that a connection to a replica leads to another server than the one that was measured.
var ErrOtherServer = errors.New("the connection leads to another server than the one that was measured")

// ErrApart says that the caller of a read sends it again, on a connection of its own: its group was late, or failed because of
// another read, or its answer is long, or the connection was lost before the read was sent.
var ErrApart = errors.New("to be sent again, apart from others")

// ErrRetired says that a host is not part of the map any more.
var ErrRetired = errors.New("the host is no longer in the map")

// errMoved says that a shard has left the host, for which a request to it was waiting.
var errMoved = errors.New("the shard is now on another host")

// Retired reports whether a request came to a host that had just left the map, or that its shard had left. It was not sent.
func Retired(err error) bool { return errors.Is(err, ErrRetired) || errors.Is(err, errMoved) }

// demotedError says that a server refused to write because it is not the primary any more.
type demotedError struct{ error }

func (e demotedError) Error() string {
	return fmt.Sprintf("the server no longer takes writes: %v", e.error)
}

func (e demotedError) Unwrap() error { return e.error }

func (e demotedError) SafeToRetry() bool { return true }
