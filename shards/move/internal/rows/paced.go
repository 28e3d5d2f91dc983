package rows

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"
)

// A step of [Paced] should take the server stepTime. A pause of restTimes the step's time follows it.
const (
	stepTime  = 2 * time.Millisecond
	restTimes = 3
	mostPages = 1 << 10
)

// Paced returns the sums of tables of a schema as [Sums] does, and pauses three quarters of the time. The session must
// be in a transaction with one snapshot, for which Paced sets some settings.
func Paced(ctx context.Context, conn *pgx.Conn, schema, as string, which Tables) ([]Sum, error) {
	tables, err := readTables(ctx, conn, schema, as, which)
	if err != nil {
		return nil, err
	}
	// With it each step could read the whole table.
	if _, err := conn.Exec(ctx, "SET LOCAL enable_seqscan = off"); err != nil {
		return nil, err
	}
	var all []Sum
	for _, t := range tables {
		s, err := paced(ctx, conn, schema, t)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// paced sums up one table, some pages at a time.
func paced(ctx context.Context, conn *pgx.Conn, schema string, t table) (Sum, error) {
	s, total := Sum{Table: t.Name}, new(big.Int)
	from := pgx.Identifier{schema, t.Name}.Sanitize()
	var end int64 // the number of pages; all rows of the snapshot are in them
	if err := conn.QueryRow(ctx, `SELECT pg_relation_size($1::regclass) / current_setting('block_size')::int`, from).Scan(&end); err != nil {
		return s, err
	}
	query := fmt.Sprintf(`SELECT count(*), coalesce(sum(%s), 0)::text, 1e6 * extract(epoch FROM clock_timestamp() - statement_timestamp()) FROM ONLY %s AS kiloshard_row
		WHERE kiloshard_row.ctid >= $1::text::tid AND kiloshard_row.ctid < $2::text::tid`, t.hash(), from)
	pages := int64(1)
	for page := int64(0); page < end; {
		var rows int64
		var sum string
		var micros float64 // of the server, without the round trip
		next := min(end, page+pages)
		if err := conn.QueryRow(ctx, query, fmt.Sprintf("(%d,0)", page), fmt.Sprintf("(%d,0)", next)).Scan(&rows, &sum, &micros); err != nil {
			return s, err
		}
		part, ok := new(big.Int).SetString(sum, 10)
		if !ok {
			return s, fmt.Errorf("sum of %s: %q: expected a number", t.Name, sum)
		}
		s.Rows += rows
		total.Add(total, part)
		took := max(1, time.Duration(micros)) * time.Microsecond
		page, pages = next, min(mostPages, 2*pages, max(1, int64(float64(pages)*float64(stepTime)/float64(took))))
		select {
		case <-time.After(restTimes * took):
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	}
	s.Sum = total.String()
	return s, nil
}
