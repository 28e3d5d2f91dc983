package rows

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// sum is the sum of rows: how many there are, and the sums of two hashes of the text of each.
type sum struct {
	count         int64
	first, second string
}

// compareTable compares the rows of an old table with those of shards, in one snapshot. schemaOf says where a shard's table is.
// The error is a [DifferenceError].
func (j *job) compareTable(ctx context.Context, conn *pgx.Conn, t *structure.Table, set shards.Set, schemaOf func(shards.Number) string) error {
	var count int64
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		count, err = j.compareIn(ctx, tx, t, set, schemaOf)
		return errors.Join(err, j.compareLinks(ctx, tx, t, set, schemaOf))
	})
	if err == nil { // a report may wait, and would keep the transaction's locks
		j.report(Event{Kind: Compared, Shards: set, Table: t.Name.String(), Rows: count})
	}
	return err
}

// compareIn is [job.compareTable] in a transaction that sees one state. It returns how many rows there are.
func (j *job) compareIn(ctx context.Context, tx pgx.Tx, t *structure.Table, set shards.Set, schemaOf func(shards.Number) string) (all int64, err error) {
	row := rowText(t)
	of := t.Route.Value("t", func(key string) string { return j.writer.Shard(key) + "::int" })
	const sums = "count(*), coalesce(sum(hashtextextended(r, 0)), 0)::text, coalesce(sum(hashtextextended(r, 1)), 0)::text"
	old, err := readSums(ctx, tx, fmt.Sprintf("select s, %s from (select %s as s, %s as r from %s t) o where s = any ($1) group by s", sums, of, row, t.Name.SQL()), numbers(set))
	if err != nil {
		return 0, err
	}
	now := map[shards.Number]sum{}
	err = j.inParts(ctx, tx, set, func(tx pgx.Tx, part []shards.Number) error {
		var parts []string
		for _, n := range part {
			parts = append(parts, fmt.Sprintf("select %d, %s from (select %s as r from %s t) o", n, sums, row, t.At(schemaOf(n)).SQL()))
		}
		found, err := readSums(ctx, tx, strings.Join(parts, " union all "))
		maps.Copy(now, found)
		return err
	})
	if err != nil {
		return 0, err
	}
	e := &DifferenceError{}
	for n := range set.All() {
		a, b := old[n], now[n]
		if a.first == "" {
			a.first, a.second = "0", "0"
		}
		all += a.count
		if a != b {
			found, err := j.differences(ctx, tx, t, n, schemaOf(n))
			if err != nil {
				return 0, err
			}
			e.Differences = append(e.Differences, fmt.Sprintf("shard %d, table %s: %d rows in the old table, %d in the shard's: %s", n, t.Name, a.count, b.count, found))
		}
	}
	if len(e.Differences) > 0 {
		return all, e
	}
	return all, nil
}

// inParts calls fn with some shards at a time, in a savepoint that is rolled back: the snapshot stays, and the locks of these shards' tables end.
func (j *job) inParts(ctx context.Context, tx pgx.Tx, set shards.Set, fn func(pgx.Tx, []shards.Number) error) error {
	for part := range slices.Chunk(slices.Collect(set.All()), j.cfg.Group) {
		savepoint, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(fn(savepoint, part), savepoint.Rollback(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// rowText is the text of a row.
func rowText(t *structure.Table) string {
	return "row(" + structure.Columns(t.All(), "t.") + `)::text collate "C"`
}

func readSums(ctx context.Context, tx pgx.Tx, query string, args ...any) (map[shards.Number]sum, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	found := map[shards.Number]sum{}
	var n int32
	var s sum
	_, err = pgx.ForEachRow(rows, []any{&n, &s.count, &s.first, &s.second}, func() error {
		found[shards.Number(n)] = s
		return nil
	})
	return found, err
}

// differences names keys of rows that only one side has.
func (j *job) differences(ctx context.Context, tx pgx.Tx, t *structure.Table, n shards.Number, schema string) (string, error) {
	of := t.Route.Value("t", func(key string) string { return j.writer.Shard(key) + "::int" })
	old := fmt.Sprintf("select row(%s)::text as k, %s as r from %s t where %s = %d", structure.Columns(t.Key, "t."), rowText(t), t.Name.SQL(), of, n)
	now := fmt.Sprintf("select row(%s)::text as k, %s as r from %s t", structure.Columns(t.Key, "t."), rowText(t), t.At(schema).SQL())
	query := fmt.Sprintf("select coalesce(string_agg(what || k, ', '), 'sums differ') from ((select 'only old ' as what, r as k from (%[1]s except all %[2]s) o limit 5) union all (select 'only new ', r as k from (%[2]s except all %[1]s) o limit 5)) d",
		old, now)
	var found string
	err := tx.QueryRow(ctx, query).Scan(&found)
	return found, err
}

// compareLinks finds rows whose foreign keys lead out of their shard. The error is a [DifferenceError].
func (j *job) compareLinks(ctx context.Context, tx pgx.Tx, t *structure.Table, set shards.Set, schemaOf func(shards.Number) string) error {
	e := &DifferenceError{}
	for _, l := range t.Links {
		if l.Crosses || !l.Valid {
			continue
		}
		var notNull []string
		for _, name := range l.Columns {
			notNull = append(notNull, "c."+quote(name)+" is not null")
		}
		to := j.set.Table(l.To)
		err := j.inParts(ctx, tx, set, func(tx pgx.Tx, part []shards.Number) error {
			var parts []string
			for _, n := range part {
				parts = append(parts, fmt.Sprintf("select %d::int, count(*) from %s c where %s and not exists (select from %s p where %s) having count(*) > 0",
					n, t.At(schemaOf(n)).SQL(), strings.Join(notNull, " and "), to.At(schemaOf(n)).SQL(), to.Equal(l.References, "p.", l.Columns, "c.")))
			}
			rows, err := tx.Query(ctx, strings.Join(parts, " union all "))
			if err != nil {
				return err
			}
			var n int32
			var count int64
			_, err = pgx.ForEachRow(rows, []any{&n, &count}, func() error {
				e.Differences = append(e.Differences, fmt.Sprintf("shard %d, table %s: %d rows refer by %s to rows of other shards; expected none, or %[4]s under crosses: in adopt.yaml from gate 1 on", n, t.Name, count, l.Name))
				return nil
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(e.Differences) > 0 {
		return e
	}
	return nil
}
