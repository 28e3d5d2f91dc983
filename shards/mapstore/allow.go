package mapstore

import (
	"errors"

	"github.com/kiloshard/kiloshard/shards"
)

// allows reports whether a change is allowed in spite of an error of [shards.CheckChange].
func (c Change) allows(err error) bool {
	var e *shards.ChangeError
	return errors.As(err, &e) && (c.NoShards && e.Field != "cluster" || c.KeysMoved && e.MovesKeys)
}

// MayHoldPassword reports whether an unexpanded DSN holds a password, or cannot be parsed, so that it may. No store accepts
// one.
func MayHoldPassword(dsn string) bool { return inspect(dsn) != noPassword }
