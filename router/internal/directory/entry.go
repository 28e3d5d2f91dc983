package directory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

// entry is where a key is, if it has an entry.
type entry struct {
	shard shards.Number
	found bool
}

// read queries the entry of a key, and caches it. A missing entry is not cached: a key that gets one a moment later would be
// sent to the wrong shard.
func (d *Directory) read(ctx context.Context, key string) (entry, error) {
	const query = `select shard from kiloshard_directory where key = $1`
	written, asked := d.writes(key), time.Now()
	var n shards.Number
	err := d.store.QueryRow(ctx, d.holder(key), query, key).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, explain(err)
	}
	d.keep(key, n, asked, written)
	return entry{n, true}, nil
}

// insert writes the entry of a key unless there is one. written reports whether it did.
func (d *Directory) insert(ctx context.Context, key string, n shards.Number) (written bool, err error) {
	const query = `insert into kiloshard_directory (key, shard) values ($1, $2) on conflict (key) do nothing`
	tag, err := d.store.Exec(ctx, d.holder(key), query, key, n)
	return tag.RowsAffected() == 1, explain(err)
}

// replace changes the entry of a key if it is as expected. written reports whether it did.
func (d *Directory) replace(ctx context.Context, key string, from, to shards.Number) (written bool, err error) {
	const query = `update kiloshard_directory set shard = $3, since = now() where key = $1 and shard = $2`
	tag, err := d.store.Exec(ctx, d.holder(key), query, key, from, to)
	return tag.RowsAffected() == 1, explain(err)
}

// holder returns the shard that holds the entry of a key.
func (d *Directory) holder(key string) shards.Number {
	return d.store.Map().EntryShard(shards.TextKey(key))
}

// explain adds what to do about missing tables.
func explain(err error) error {
	if failure.SQLState(err) == "42P01" {
		return fmt.Errorf("%w; kiloshard create makes the tables of the strategy", err)
	}
	return err
}

// maxKey is the longest key, in bytes; it is sure to fit into an index of Postgres.
const maxKey = 1024

// textOf returns the key as it is stored in its entry.
func textOf(key shards.Key) (string, error) {
	text := key.String()
	switch {
	case key.IsZero():
		return "", fmt.Errorf("no key: %w", shards.ErrNoShard)
	case len(text) > maxKey:
		return "", &shards.FieldError{Field: "key", Found: fmt.Sprintf("%d bytes", len(text)), Expected: fmt.Sprintf("%d at most in a directory", maxKey)}
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", &shards.FieldError{Field: "key", Found: "bytes that are not text", Expected: "text in UTF-8 in a directory"}
	}
	return text, nil
}
