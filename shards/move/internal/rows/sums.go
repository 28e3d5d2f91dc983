// Package rows copies the rows of a schema from one host to another, and compares the two.
package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Sum is the count and checksum of a table's rows, which are the same in two copies.
type Sum struct {
	Table string
	Rows  int64
	Sum   string // the sum of the hashes of the rows, so that their order does not matter
}

// Querier is a session or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// changed is a condition on a row: a transaction that a snapshot does not see wrote it. The age of a row's transaction,
// of 32 bits, excludes all but the newest ones.
const changed = `CASE WHEN age(kiloshard_row.xmin) <= (SELECT age((pg_snapshot_xmin('%[1]s')::text::bigint & 4294967295)::text::xid))
  THEN NOT pg_visible_in_snapshot((pg_snapshot_xmin('%[1]s')::text::bigint + ((kiloshard_row.xmin::text::bigint - pg_snapshot_xmin('%[1]s')::text::bigint) & 4294967295))::text::xid8, '%[1]s')
  ELSE false END`

// Sums returns the sums of tables of a schema, in the order of their names. With a snapshot, as pg_current_snapshot
// writes it, the sums cover the rows that have changed since, and the counts all rows. Names of objects in the schema
// count as names in schema as.
func Sums(ctx context.Context, conn Querier, schema, as string, which Tables, since string) ([]Sum, error) {
	tables, err := readTables(ctx, conn, schema, as, which)
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	filter := ""
	if since != "" {
		filter = " FILTER (WHERE " + fmt.Sprintf(changed, since) + ")"
	}
	var parts []string
	for _, t := range tables {
		parts = append(parts, fmt.Sprintf(`SELECT '%s', count(*), coalesce(sum(%s)%s, 0)::text FROM ONLY %s AS kiloshard_row`,
			strings.ReplaceAll(t.Name, "'", "''"), t.hash(), filter, pgx.Identifier{schema, t.Name}.Sanitize()))
	}
	found, err := conn.Query(ctx, strings.Join(parts, " UNION ALL "), pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByPos[Sum])
	slices.SortFunc(all, func(a, b Sum) int { return strings.Compare(a.Table, b.Table) })
	return all, err
}
