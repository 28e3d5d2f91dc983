package move

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
)

// tableSum is what two copies of a table must agree in.
type tableSum struct {
	Table string
	Rows  int64
	Sum   string // of the hashes of all rows, so that their order means nothing
}

// RowsError says that the rows on the target are not those on the source.
type RowsError struct {
	Differences []string // such as "photos: 1000 rows on pg-a, 999 on pg-b"
}

// Error names the first table that differs.
func (e *RowsError) Error() string {
	text := "the target's rows differ from the source's: " + e.Differences[0]
	if more := len(e.Differences) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more tables", more)
	}
	return text
}

// querier is a session or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// sums returns the sums of all tables of a schema, in the order of their names.
func sums(ctx context.Context, conn querier, schema string) ([]tableSum, error) {
	rows, err := conn.Query(ctx, `SELECT relname::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r' ORDER BY relname COLLATE "C"`, schema)
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	var parts []string
	for _, t := range tables {
		parts = append(parts, fmt.Sprintf(`SELECT '%s', count(*), coalesce(sum(hashtextextended(kiloshard_row::text COLLATE "C", 0)::numeric), 0)::text FROM %s AS kiloshard_row`,
			quoted(t), name(schema, t)))
	}
	if rows, err = conn.Query(ctx, strings.Join(parts, " UNION ALL "), pgx.QueryExecModeExec); err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[tableSum])
	slices.SortFunc(all, func(a, b tableSum) int { return strings.Compare(a.Table, b.Table) })
	return all, err
}

// quoted doubles the quotes of a text between quotes.
func quoted(text string) string { return strings.ReplaceAll(text, "'", "''") }

// compare compares the tables of two schemas, at the same time. The error is a [RowsError] if they differ.
func (j *job) compare(ctx context.Context, from querier, schema string, to querier) error {
	var source, target []tableSum
	var sourceErr, targetErr error
	var wg sync.WaitGroup
	wg.Go(func() { source, sourceErr = sums(ctx, from, schema) })
	wg.Go(func() { target, targetErr = sums(ctx, to, j.Schema) })
	wg.Wait()
	switch {
	case sourceErr != nil:
		return fmt.Errorf("comparing rows on %s: %w", j.Source, sourceErr)
	case targetErr != nil:
		return fmt.Errorf("comparing rows on %s: %w", j.Target, targetErr)
	}
	e := &RowsError{}
	found := map[string]tableSum{}
	for _, t := range target {
		found[t.Table] = t
	}
	for _, s := range source {
		switch t, ok := found[s.Table]; {
		case !ok:
			e.Differences = append(e.Differences, fmt.Sprintf("%s is not on %s", s.Table, j.Target))
		case s.Rows != t.Rows:
			e.Differences = append(e.Differences, fmt.Sprintf("%s: %d rows on %s, %d on %s", s.Table, s.Rows, j.Source, t.Rows, j.Target))
		case s.Sum != t.Sum:
			e.Differences = append(e.Differences, fmt.Sprintf("%s: %d rows on both, and not the same", s.Table, s.Rows))
		}
	}
	if len(e.Differences) > 0 {
		return e
	}
	return nil
}

// verifyUnderFence compares all rows of a shard that is small.
func (j *job) verifyUnderFence(ctx context.Context, tx pgx.Tx) error {
	if !j.small {
		return nil
	}
	return j.compare(ctx, tx, j.Schema, j.to)
}

// verifyBefore compares what can be compared while nobody waits: the structure, which somebody may have changed by hand, and
// the rows of a large shard.
func (j *job) verifyBefore(ctx context.Context) error {
	if err := j.measure(ctx); err != nil {
		return err
	}
	if j.small = j.bytes <= j.cfg.VerifyUnderFence; j.small {
		return j.verifyStructure(ctx)
	}
	if err := j.compareAsOfOneMoment(ctx); err != nil {
		return err
	}
	return j.catchUp(ctx)
}

// snapshots returns sessions in transactions that see the same rows on both sides.
func (j *job) snapshots(ctx context.Context) (source, target *pgx.Conn, err error) {
	if source, err = open(ctx, j.src); err != nil {
		return source, target, err
	}
	if target, err = open(ctx, j.dst); err != nil {
		return source, target, err
	}
	err = j.retry(ctx, func() error {
		return j.cutOnce(ctx, func(ctx context.Context, _ pgx.Tx) error {
			for _, conn := range []*pgx.Conn{source, target} {
				const begin = "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1"
				if err := run(ctx, conn, begin); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return source, target, err
}

// verifyStructure compares the structures of both sides.
func (j *job) verifyStructure(ctx context.Context) error {
	var structures [2]drift.Structure
	for i, host := range []shards.Host{j.src, j.dst} {
		conn, err := drift.Connect(ctx, host)
		if err != nil {
			return err
		}
		found, err := drift.Read(ctx, conn, j.cfg.Map, j.Shard)
		closeConn(ctx, conn)
		if err != nil {
			return err
		}
		structures[i] = found[j.Shard]
	}
	if !structures[0].Equal(structures[1]) {
		return &StructureError{Differences: drift.Differences(structures[0], structures[1])}
	}
	return nil
}
