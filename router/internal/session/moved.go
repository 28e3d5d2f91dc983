package session

import (
	"strings"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/sql"
)

// withMoved adds [failure.ErrMoved] to the error of an entry that says so.
func withMoved(err error) error {
	if entryState(err) != "3F000" {
		return err
	}
	return failure.Moved(err)
}

// OnFence reports whether a statement came upon the fence of a shard.
func OnFence(err error) bool { return failure.SQLState(err) == sql.ShardGone }

// withFenced adds [failure.ErrMoved] to the error of a statement that came upon the fence of a shard, where all that it
// belongs to has had no effect: in a transaction, which the error has ended, or of a shard that is only read.
func withFenced(err error) error {
	if !OnFence(err) {
		return err
	}
	return failure.Moved(err)
}

// MayHaveMoved reports whether a statement may have failed because its shard has moved away between its entry and itself:
// it came upon the fence, upon nothing where something was, or upon a sequence that gives nothing any more. In a transaction that
// was begun before, an entry notices nothing of that either: until it takes a lock, Postgres has names mean what they did.
func MayHaveMoved(err error) bool {
	if entryState(err) != "" {
		return false
	}
	switch code := failure.SQLState(err); code {
	case sql.ShardGone, sql.Refused, "55000", "2200H":
		return true
	default:
		return strings.HasPrefix(code, "42") || strings.HasPrefix(code, "0A") || strings.HasPrefix(code, "3F")
	}
}
