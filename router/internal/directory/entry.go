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

// entry is the entry of a key; found is false if it has none.
type entry struct {
	shard shards.Number
	found bool
}

// read queries the entry of a key and caches it. It does not cache a missing entry: a key that gets an entry a moment later
// would go to the wrong shard.
func (d *Directory) read(ctx context.Context, key string) (entry, error) {
	const query = `select shard from kiloshard_directory where key = $1`
	written, asked := d.writes(key), time.Now()
	var n shards.Number
	err := d.store.QueryRow(ctx, d.entryShard(key), query, key).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, explain(err)
	}
	d.keep(key, n, asked, written)
	return entry{n, true}, nil
}

// insert inserts the entry of a key unless there is one. written reports whether it inserted a row.
func (d *Directory) insert(ctx context.Context, key string, n shards.Number) (written bool, err error) {
	const query = `insert into kiloshard_directory (key, shard) values ($1, $2) on conflict (key) do nothing`
	tag, err := d.store.Exec(ctx, d.entryShard(key), query, key, n)
	return tag.RowsAffected() == 1, explain(err)
}

// replace changes the entry of a key from one shard to another. written reports whether it changed a row: it does not if
// the entry names another shard.
func (d *Directory) replace(ctx context.Context, key string, from, to shards.Number) (written bool, err error) {
	const query = `update kiloshard_directory set shard = $3, since = now() where key = $1 and shard = $2`
	tag, err := d.store.Exec(ctx, d.entryShard(key), query, key, from, to)
	return tag.RowsAffected() == 1, explain(err)
}

// holder returns the shard that holds the entry of a key.
func (d *Directory) entryShard(key string) shards.Number {
	return d.store.Map().EntryShard(shards.TextKey(key))
}

// explain adds advice to an error about missing tables.
func explain(err error) error {
	if failure.SQLState(err) == "42P01" {
		return fmt.Errorf("%w; kiloshard create makes the tables of the strategy", err)
	}
	return err
}

// maxKey is the length limit of a key, in bytes. Such a key always fits into a Postgres index.
const maxKey = 1024

// textOf returns the key as its entry stores it.
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
