package mapstore

import (
	"errors"

	"github.com/kiloshard/kiloshard/shards"
)

// allows reports whether a change passes in spite of an error of [shards.CheckChange].
func (c Change) allows(err error) bool {
	var e *shards.ChangeError
	return errors.As(err, &e) && (c.NoShards && e.Field != "cluster" || c.KeysMoved && e.MovesKeys)
}

// MayHoldPassword reports whether a DSN as written holds a password, or is not written as Postgres reads it, so that this
// is unknown. No store takes one.
func MayHoldPassword(dsn string) bool { return inspect(dsn) != noPassword }
