package mapstore

import (
	"errors"

	"github.com/kiloshard/kiloshard/shards"
)

// allows tells whether a change passes in spite of an error of [shards.CheckChange].
func (c Change) allows(err error) bool {
	var e *shards.ChangeError
	return c.KeysMoved && errors.As(err, &e) && e.MovesKeys
}

// MayHoldPassword tells whether a DSN as written holds a password, or is not written as Postgres reads it, so that this
// cannot be told. No store takes one.
func MayHoldPassword(dsn string) bool { return inspect(dsn) != noPassword }
