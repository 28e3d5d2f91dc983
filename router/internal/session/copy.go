package session

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/operation"
)

func (t *tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	table, err := t.qualify(ctx, table)
	if err != nil {
		return 0, err
	}
	ctx = t.operation(ctx, operation.Copy, "COPY "+table[len(table)-1])
	copied, err := t.session.Conn.CopyFrom(ctx, table, columns, source)
	return copied, t.shard.Failed(err)
}

// qualify finds the schema of a table. pgx asks for the types of the columns only once a connection and a table's name:
// under a name of one part it would take those of the first shard for those of all.
func (t *tx) qualify(ctx context.Context, table pgx.Identifier) (pgx.Identifier, error) {
	if len(table) != 1 {
		return table, nil
	}
	const query = `select n.nspname::text
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = pg_catalog.to_regclass($1)`
	var schema string
	rows, err := t.session.Query(ctx, t.shard, nil, t.scope(), query, []any{table.Sanitize()})
	if err != nil {
		return table, err
	}
	err = Row{Rows: rows}.Scan(&schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return table, nil // COPY says best what is missing
	}
	return pgx.Identifier{schema, table[0]}, err
}
