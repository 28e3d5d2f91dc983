package router

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kiloshard/kiloshard/shards"
)

// ForKey returns the shard of a number, such as a user's ID, by the map's strategy.
//
// With modulo, hash and range it is arithmetic on the map: it takes no lock, allocates nothing, and ctx means nothing to
// it. With a directory it may ask a host, until ctx ends, and may return an entry as old as [Config.DirectoryMaxAge].
//
// It returns [shards.ErrNoShard] for a key in no range, or without an entry where the map says no other place; and with
// a directory the errors of a [Shard].
func (r *Router) ForKey(ctx context.Context, key int64) (Shard, error) {
	now := r.now.Load()
	if now.choice != nil {
		return r.directory.shard(ctx, shards.NumberKey(key))
	}
	n, err := now.shards.ForKey(key)
	if err != nil {
		return Shard{}, err
	}
	return now.on(n), nil
}

// ForText returns the shard of a text, such as an address, as [Router.ForKey] does that of a number. The decimal text of
// a number is the same key as the number. It returns [shards.ErrNoShard] also for a text that is no number where the
// strategy wants numbers, and with a directory a [shards.FieldError] for more than 1024 bytes and what is no text in UTF-8.
func (r *Router) ForText(ctx context.Context, key string) (Shard, error) {
	now := r.now.Load()
	if now.choice != nil {
		return r.directory.shard(ctx, shards.TextKey(key))
	}
	n, err := now.shards.ForText(key)
	if err != nil {
		return Shard{}, err
	}
	return now.on(n), nil
}

// maxKey is the length in bytes of a key that surely fits in an index of Postgres.
const maxKey = 1024

// keyText returns the key as a directory has it.
func keyText(key shards.Key) (string, error) {
	text := key.String()
	switch {
	case key.IsZero():
		return "", fmt.Errorf("no key: %w", shards.ErrNoShard)
	case len(text) > maxKey:
		return "", &shards.FieldError{Field: "key", Found: fmt.Sprintf("%d bytes", len(text)), Expected: fmt.Sprintf("%d at most in a directory", maxKey)}
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", &shards.FieldError{Field: "key", Found: "bytes that are no text", Expected: "text in UTF-8 in a directory"}
	}
	return text, nil
}
