// Package catalog has the questions about a schema that several packages of a move ask.
package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// In is a condition on the OID of a row of a catalog, such as pg_class: that the schema, an expression for its OID, has it. pg_depend has an
// index by schema. The catalogs themselves have none, and with thousands of shards each look at one of them would read them whole.
func In(catalog, oid, schema string) string {
	return fmt.Sprintf("%s IN (SELECT objid FROM pg_depend WHERE classid = '%s'::regclass AND refclassid = 'pg_namespace'::regclass AND refobjid = %s)", oid, catalog, schema)
}

// Replicated returns the names of a schema's tables that are replicated, as SQL: partitions and children each by themselves, since a partitioned table
// has no rows.
func Replicated(ctx context.Context, conn *pgx.Conn, schema string) ([]string, error) {
	const query = `SELECT format('ONLY %I.%I', $1::text, relname) FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relpersistence = 'p' ORDER BY relname`
	return session.Texts(ctx, conn, query, schema)
}
