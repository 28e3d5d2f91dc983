package structure

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
)

// UnloggedKeys is a condition for foreign keys of unlogged tables to tables that are replicated. A subscription applies a TRUNCATE … CASCADE to the
// replicated tables only, and Postgres empties none of them while another table refers to it. So the cutover makes these keys.
const UnloggedKeys = `con.contype = 'f' AND c.relpersistence = 'u' AND (SELECT relpersistence FROM pg_class WHERE oid = con.confrelid) <> 'u'`

// withoutUnloggedKeys leaves them out of the structure of a schema, with what is about them.
func withoutUnloggedKeys(ctx context.Context, conn *pgx.Conn, schema string, s drift.Structure) (drift.Structure, error) {
	found, err := conn.Query(ctx, `SELECT con.oid FROM pg_constraint con JOIN pg_class c ON c.oid = con.conrelid WHERE con.connamespace = to_regnamespace($1) AND `+UnloggedKeys, schema)
	if err != nil {
		return nil, err
	}
	keys, err := pgx.CollectRows(found, pgx.RowTo[uint32])
	const constraints, comments = 2606, 2609 // pg_constraint and pg_description
	return slices.DeleteFunc(s, func(l drift.Line) bool {
		return (l.Class == constraints || l.Class == comments) && slices.Contains(keys, l.Object)
	}), err
}
