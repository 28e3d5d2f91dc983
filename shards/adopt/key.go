package adopt

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// findKey returns the key that the config or the file names.
func findKey(catalog *tables.Catalog, cfg Config) (tables.ColumnName, error) {
	if cfg.Key == "" && cfg.File == nil {
		return tables.ColumnName{}, &shards.FieldError{Field: "key", Found: "missing", Expected: "a column of a table, such as users.id"}
	}
	if cfg.Key == "" {
		key := cfg.File.Key
		if t := catalog.Table(key.Table); t == nil || t.Column(key.Column) == nil {
			return key, cfg.File.wrong("key", key.String(), "a column of a table that is there")
		}
		return key, nil
	}
	wrong := func(err error) error {
		return &shards.FieldError{Field: "key", Found: err.Error(), Expected: "a column of a table, such as users.id"}
	}
	parts, err := tables.Split(cfg.Key)
	if err != nil {
		return tables.ColumnName{}, wrong(err)
	}
	if len(parts) != 2 && len(parts) != 3 {
		return tables.ColumnName{}, wrong(fmt.Errorf("%s", cfg.Key))
	}
	t, err := catalog.Find(parts[:len(parts)-1]...)
	if err != nil {
		return tables.ColumnName{}, wrong(err)
	}
	key := tables.ColumnName{Table: t.Name, Column: parts[len(parts)-1]}
	if t.Column(key.Column) == nil {
		return key, wrong(fmt.Errorf("table %s has no column %s", t.Name, key.Column))
	}
	if cfg.File != nil && cfg.File.Key != key {
		return key, cfg.File.wrong("key", cfg.File.Key.String(), "the key of the command, "+key.String()+": or leave that out")
	}
	return key, nil
}

// checkCollation returns an error for a key of which different texts can be equal: they would be in different shards.
func checkCollation(ctx context.Context, tx pgx.Tx, key tables.ColumnName) error {
	const query = `select exists (select from pg_attribute a join pg_collation c on c.oid = a.attcollation
		where a.attrelid = $1::text::regclass and a.attname = $2 and not c.collisdeterministic)`
	var loose bool
	err := tx.QueryRow(ctx, query, key.Table.SQL(), key.Column).Scan(&loose)
	if err == nil && loose {
		err = &shards.FieldError{Field: "key", Found: key.String() + ", whose collation is not deterministic", Expected: "a column in which equal texts are the same: they are in one shard"}
	}
	return err
}
