package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// lookLimit bounds the search for the table's number after an error in a transaction, which needs a second connection of the pool:
// other transactions may hold all.
const lookLimit = 5 * time.Second

// refused adds the table's number of shards to the error of a statement that Postgres refused because the table has another one.
func (m *Mod[T]) refused(ctx context.Context, key []byte, err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "42703" { // undefined_column
		return err
	}
	column, errLook := m.column(ctx, key)
	switch number, is := strings.CutPrefix(column, keyColumn); {
	case errLook != nil:
		return fmt.Errorf("%w; the table's number of shards is unknown: %s", err, errLook.Error()) // it is no reason to retry
	case is && column != m.key:
		return fmt.Errorf("%w, as the table has: %w", m.of.wrong(number), err)
	}
	return err
}

// column returns the name of the column that has the keys, in the shard of a key, or "".
func (m *Mod[T]) column(ctx context.Context, key []byte) (name string, err error) {
	if m.in.tx != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookLimit)
		defer cancel()
	}
	shard, err := m.Shard(key)
	if err != nil {
		return "", err
	}
	err = shard.QueryRow(ctx, `select attname::text from pg_catalog.pg_attribute
where attrelid = pg_catalog.to_regclass($1) and attnum > 0 and not attisdropped and attname::text ~ $2`,
		m.table, "^"+keyColumn+"[0-9]+$").Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return name, err
}
