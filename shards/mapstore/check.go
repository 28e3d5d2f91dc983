package mapstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/document"
)

// MaxNote is the longest By and Why of a change, in bytes.
const MaxNote = 4096

// Checker is a [Store] that can check a change without making it. The stores of this package do.
type Checker interface {
	// Check returns the error that [Store.Swap] would return for next, from the current version, as far as the store
	// can find out without a change: for a file, whether it can be written; for Postgres and etcd, whether the role may
	// write.
	Check(ctx context.Context, next Change) error
}

// Check returns the error with which Swap would refuse the change from now, which has no map if there is none, in the
// store that a config names. It does not connect to the store.
func Check(cfg shards.Config, opts Options, now Entry, next Change) error {
	_, _, err := next.check(opts.reader(cfg), now.Map)
	return err
}

// CheckNote checks By or Why of a change. field names it in the [shards.FieldError] that CheckNote returns.
func CheckNote(field, text string) error {
	if len(text) > MaxNote || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &shards.FieldError{
			Field: field, Found: fmt.Sprintf("%d bytes", len(text)), Expected: fmt.Sprintf("text in UTF-8, %d bytes at most", MaxNote),
		}
	}
	return nil
}

// CheckTrust returns a [shards.FieldError] for the first DSN that uses a variable, a file or a host that [shards.Store]
// does not allow in DSNs from a store.
func CheckTrust(local shards.Store, c shards.Config) error { return document.CheckTrust(local, c) }

// MayHoldPassword reports whether an unexpanded DSN holds a password, or cannot be parsed, so that it may. No store
// accepts one.
func MayHoldPassword(dsn string) bool { return document.MayHoldPassword(dsn) }

// check returns the map that the change makes of from, nil for none, and its document. Its errors are refusals.
func (c Change) check(docs *document.Reader, from *shards.Map) (*shards.Map, []byte, error) {
	if err := errors.Join(CheckNote("by", c.By), CheckNote("why", c.Why)); err != nil {
		return nil, nil, backend.Refusal(err)
	}
	m, text, err := docs.Next(from, c.Config, c.allows)
	return m, text, backend.Refusal(err)
}

// allows reports whether the change is allowed in spite of an error of [shards.CheckChange].
func (c Change) allows(err error) bool {
	var e *shards.ChangeError
	return errors.As(err, &e) && (c.NoShards && e.Field != "cluster" || c.KeysMoved && e.MovesKeys)
}
