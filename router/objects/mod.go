package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// Mod is a table whose keys are any bytes, such as a name, an address or a Facebook ID. The row of a key is on shard md5(key) % N,
// see [shards.MD5Shard]. Values of T are stored as JSON, by encoding/json. A Mod is safe for concurrent use.
type Mod[T any] struct {
	r     *router.Router
	of    ModTable
	table string // its name in SQL
	key   string // the column
	in    transaction
}

// Item is a row of a Mod.
type Item[T any] struct {
	Value   T
	Version int64 // changes with each write
}

// MaxKey is how long a key may be, in bytes: Postgres keeps it in an index.
const MaxKey = 2000

// ErrChanged says that a row was changed or deleted after it was read.
var ErrChanged = errors.New("the row has changed")

// OpenMod returns a table of [Tables.Mods]. It returns a [shards.FieldError] for a number of shards that the map does not have. If
// the table was created for another number, all methods of the Mod return a [shards.FieldError] with both numbers, and read
// and write nothing.
func OpenMod[T any](r *router.Router, of ModTable) (*Mod[T], error) {
	if of.Shards < 1 || of.Shards > r.Map().Len() {
		return nil, of.wrong(fmt.Sprintf("1 to %d", r.Map().Len()))
	}
	return &Mod[T]{r: r, of: of, table: pgx.Identifier{of.Name}.Sanitize(), key: of.key()}, nil
}

// Shard returns the shard of a key.
func (m *Mod[T]) Shard(key []byte) (router.Shard, error) {
	return m.r.ForShard(shards.MD5Shard(key, m.of.Shards))
}

// sender returns where statements for a key are sent.
func (m *Mod[T]) sender(key []byte) (sender, error) {
	shard, err := m.Shard(key)
	if err != nil {
		return nil, err
	}
	return m.in.on(shard)
}

// Get returns the row of a key, or [ErrNotFound]. All methods also return the errors of a [router.Shard].
func (m *Mod[T]) Get(ctx context.Context, key []byte) (Item[T], error) {
	item, err := m.row(ctx, key, `select data::text, version from `+m.table+` where `+m.key+` = $1`)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	return item, err
}

// PutIfAbsent inserts the row of a key and returns it with true. If there is one, it returns that row with false. Of concurrent
// calls, only one inserts a row.
func (m *Mod[T]) PutIfAbsent(ctx context.Context, key []byte, value T) (Item[T], bool, error) {
	text, err := encode(value)
	if err != nil {
		return Item[T]{}, false, err
	}
	query := `insert into ` + m.table + ` (` + m.key + `, data) values ($1, $2) on conflict (` + m.key + `) do nothing returning data::text, version`
	for {
		item, err := m.row(ctx, key, query, text)
		if !errors.Is(err, pgx.ErrNoRows) {
			return item, err == nil, err
		}
		if item, err = m.Get(ctx, key); !errors.Is(err, ErrNotFound) { // deleted meanwhile
			return item, false, err
		}
	}
}

// Put inserts the row of a key, or replaces its value without a look at the version, and returns the row.
func (m *Mod[T]) Put(ctx context.Context, key []byte, value T) (Item[T], error) {
	text, err := encode(value)
	if err != nil {
		return Item[T]{}, err
	}
	return m.row(ctx, key, `insert into `+m.table+` (`+m.key+`, data) values ($1, $2)
on conflict (`+m.key+`) do update set data = excluded.data, version = default, ts = now() returning data::text, version`, text)
}

// Swap replaces the value of a row that still has the version that was read, and returns it with its new version. It returns
// [ErrChanged] if the row was changed or deleted since.
func (m *Mod[T]) Swap(ctx context.Context, key []byte, version int64, value T) (Item[T], error) {
	text, err := encode(value)
	if err != nil {
		return Item[T]{}, err
	}
	query := `update ` + m.table + ` set data = $3, version = default, ts = now() where ` + m.key + ` = $1 and version = $2
returning data::text, version`
	item, err := m.row(ctx, key, query, version, text)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrChanged
	}
	return item, err
}

// Delete removes a row that still has the version that was read. It returns [ErrChanged] if the row was changed or deleted since.
func (m *Mod[T]) Delete(ctx context.Context, key []byte, version int64) error {
	on, err := m.sender(key)
	if err != nil {
		return err
	}
	tag, err := on.Exec(ctx, `delete from `+m.table+` where `+m.key+` = $1 and version = $2`, append([]byte{}, key...), version) // nil would be NULL
	if err != nil {
		return m.refused(ctx, key, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrChanged
	}
	return nil
}

// row runs a statement that returns at most one row.
func (m *Mod[T]) row(ctx context.Context, key []byte, query string, more ...any) (item Item[T], err error) {
	on, err := m.sender(key)
	if err != nil {
		return item, err
	}
	if key == nil {
		key = []byte{} // nil would be NULL
	}
	if len(key) > MaxKey {
		return item, &shards.FieldError{Field: "key", Found: fmt.Sprintf("%d bytes", len(key)), Expected: fmt.Sprintf("%d at most", MaxKey)}
	}
	var text []byte
	if err := on.QueryRow(ctx, query, append([]any{key}, more...)...).Scan(&text, &item.Version); err != nil {
		return item, m.refused(ctx, key, err)
	}
	return item, json.Unmarshal(text, &item.Value)
}
