package rows

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Unchanged checks that each row of a copy that has not changed since a snapshot is also in the original, in the
// columns that both have. It calls differs for each table with other rows. Both hosts sort the hashes of a table, on
// disk if it is large.
func Unchanged(ctx context.Context, from *pgx.Conn, original string, to *pgx.Conn, copied, since string, differs func(table string, unknown int64)) error {
	all, err := readTables(ctx, from, original, copied, All)
	if err != nil {
		return err
	}
	here, err := readTables(ctx, to, copied, copied, All)
	if err != nil {
		return err
	}
	there := map[string]table{}
	for _, t := range here {
		there[t.Name] = t
	}
	for _, t := range all {
		now, ok := there[t.Name]
		if !ok { // dropped since
			continue
		}
		original := t.common(now)
		copied := original
		copied.names, copied.schema = now.names, now.schema
		unknown, err := countUnknown(ctx, from, original, to, copied, since)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		if unknown > 0 {
			differs(t.Name, unknown)
		}
	}
	return nil
}

// countUnknown counts the rows of the copy of a table that are not in the original.
func countUnknown(ctx context.Context, from *pgx.Conn, original table, to *pgx.Conn, copied table, since string) (int64, error) {
	query := func(t table, where string) string {
		return fmt.Sprintf("SELECT %s FROM ONLY %s AS kiloshard_row %s ORDER BY 1", t.hash(), pgx.Identifier{t.schema[0], t.Name}.Sanitize(), where)
	}
	known, err := from.Query(ctx, query(original, ""), pgx.QueryExecModeExec)
	if err != nil {
		return 0, err
	}
	defer known.Close()
	rows, err := to.Query(ctx, query(copied, "WHERE NOT "+fmt.Sprintf(changed, since)), pgx.QueryExecModeExec)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var count, want, have int64
	more := next(known, &have)
	for next(rows, &want) {
		for more && have < want {
			more = next(known, &have)
		}
		if !more || have != want {
			count++
			continue
		}
		more = next(known, &have)
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	for more { // so that the session can be used again
		more = next(known, &have)
	}
	return count, known.Err()
}

func next(rows pgx.Rows, into *int64) bool {
	return rows.Next() && rows.Scan(into) == nil
}
