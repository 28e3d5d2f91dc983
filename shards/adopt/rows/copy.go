package rows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/mirror"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// each calls fn for each item with a session of its own, some at a time. No other begins after an error.
func each[T any](ctx context.Context, j *job, items []T, fn func(context.Context, *pgx.Conn, T) error) error {
	work := make(chan T, len(items))
	for _, item := range items {
		work <- item
	}
	close(work)
	group, ctx := errgroup.WithContext(ctx)
	for range min(j.cfg.Parallel, len(items)) {
		group.Go(func() error {
			conn, err := ledger.Open(ctx, j.host)
			if err != nil {
				return err
			}
			defer ledger.Close(ctx, conn)
			for item := range work {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := fn(ctx, conn, item); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// copyTable copies the rows of one table to the hidden tables of shards at stage copying. Shards that are equally far go together.
func (j *job) copyTable(ctx context.Context, conn *pgx.Conn, t *structure.Table, members []shards.Number) error {
	for {
		rows, err := conn.Query(ctx, `select last, array_agg(shard order by shard) from kiloshard_adopt.copies c join kiloshard_adopt.shards s using (shard)
			where relation = $1 and not done and s.stage = 'copying' and shard = any ($2) group by last order by last nulls first limit 1`, t.Name.String(), numbers(shards.SetOf(members...)))
		if err != nil {
			return err
		}
		var last []string
		var group []int32
		tag, err := pgx.ForEachRow(rows, []any{&last, &group}, func() error { return nil })
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if err := j.copyPass(ctx, conn, t, last, group); err != nil {
			return fmt.Errorf("copying table %s: %w", t.Name, err)
		}
	}
}

func numbers(set shards.Set) []int32 {
	var all []int32
	for n := range set.All() {
		all = append(all, int32(n))
	}
	return all
}

// copyPass copies the rows of some shards after a key, none for all.
func (j *job) copyPass(ctx context.Context, conn *pgx.Conn, t *structure.Table, last []string, group []int32) error {
	var members []shards.Number
	for _, n := range group {
		members = append(members, shards.Number(n))
	}
	set := shards.SetOf(members...)
	for size, wait := j.cfg.Batch, shortPause; ; {
		next, rows, err := j.copyBatch(ctx, conn, t, last, group, size)
		if isCode(err, "55P03", "40P01", "40001") { // a writer has some of the rows, and may want others of them
			if err := pause(ctx, wait); err != nil {
				return err
			}
			size, wait = max(1, size/2), min(2*wait, longPause)
			continue
		}
		if err != nil {
			return err
		}
		j.report(Event{Kind: Copied, Shards: set, Table: t.Name.String(), Rows: rows})
		if next == nil {
			return nil
		}
		last, size, wait = next, min(2*size, j.cfg.Batch), shortPause
	}
}

// lockRows is how long a batch waits for the rows of writers: less than deadlock_timeout, so that Postgres ends no writer that waits for the batch.
const lockRows = 100 * time.Millisecond

// copyBatch copies some rows after a key in one transaction, and returns the last key, or nil at the end.
func (j *job) copyBatch(ctx context.Context, conn *pgx.Conn, t *structure.Table, last []string, group []int32, size int) (next []string, rows int64, err error) {
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: connect.Begin}, func(tx pgx.Tx) error {
		const limit = `select set_config('lock_timeout', least($1::int, greatest(1, setting::int / 2))::text, true) from pg_settings where name = 'deadlock_timeout'`
		if _, err := tx.Exec(ctx, limit, lockRows.Milliseconds()); err != nil {
			return err
		}
		part := rangeOf{table: t, after: last}
		err := tx.QueryRow(ctx, part.bound(), append(part.args(), size-1)...).Scan(&next)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		part.upTo = next
		if err := tx.QueryRow(ctx, j.copyStatement(part, group), append(part.args(), group)...).Scan(&rows); err != nil {
			return err
		}
		const note = `update kiloshard_adopt.copies set last = coalesce($1, last), done = $2 where relation = $3 and shard = any ($4)`
		if _, err := tx.Exec(ctx, note, next, next == nil, t.Name.String(), group); err != nil {
			return err
		}
		return j.lock.Check(ctx, tx)
	})
	return next, rows, err
}

// rangeOf is the rows of a table after one key, and up to another. Keys are texts; nil is the end of the table.
type rangeOf struct {
	table       *structure.Table
	after, upTo []string
}

// args returns the keys as arguments of a statement.
func (r rangeOf) args() []any {
	var all []any
	for _, key := range [][]string{r.after, r.upTo} {
		if key != nil {
			all = append(all, key)
		}
	}
	return all
}

// where returns the condition for the rows. Without OR a prepared statement keeps to the index.
func (r rangeOf) where() string {
	where, param := "true", 0
	for i, bound := range [][]string{r.after, r.upTo} {
		if bound == nil {
			continue
		}
		param++
		var values []string
		for i, typ := range r.table.KeyTypes() {
			values = append(values, fmt.Sprintf("($%d::text[])[%d]::%s", param, i+1, typ))
		}
		where += " and " + r.compared(values, []string{">", "<="}[i])
	}
	return where
}

// compared compares the key with values, as rows. An operator of another schema than pg_catalog compares no columns of other types, so then they
// are compared one by one.
func (r rangeOf) compared(values []string, operator string) string {
	t := r.table
	if !slices.ContainsFunc(t.Key, func(name string) bool { return t.Operator(name, "=") != "=" }) {
		return fmt.Sprintf("(%s) %s (%s)", structure.Columns(t.Key, "t."), operator, strings.Join(values, ", "))
	}
	is := func(i int, operator string) string {
		return fmt.Sprintf("t.%s %s %s", quote(t.Key[i]), t.Operator(t.Key[i], operator), values[i])
	}
	last := len(t.Key) - 1
	where := is(last, operator)
	for i := last - 1; i >= 0; i-- {
		where = fmt.Sprintf("%s and (%s or %s)", is(i, operator[:1]+"="), is(i, operator[:1]), where)
	}
	return where
}

// bound returns the query for the key of the row that is so many rows, the last parameter, after the first one.
func (r rangeOf) bound() string {
	var texts []string
	for _, name := range r.table.Key {
		texts = append(texts, "t."+quote(name)+"::text")
	}
	return fmt.Sprintf("select array[%s] from %s t where %s order by %s offset $%d limit 1",
		strings.Join(texts, ", "), r.table.Name.SQL(), r.where(), structure.Columns(r.table.Key, "t."), len(r.args())+1)
}

// copyStatement returns the statement that copies the rows of shards, the last parameter. Its row locks keep a row from being copied as it
// was before a writer's change, or after its deletion.
func (j *job) copyStatement(r rangeOf, group []int32) string {
	t := r.table
	of := t.Route.Value("t", func(key string) string { return j.writer.Shard(key) + "::int" })
	written := structure.Columns(t.Written(), "")
	var b strings.Builder
	fmt.Fprintf(&b, `with batch as materialized (select %s, %s as "kiloshard shard" from %s t where %s and %[2]s = any ($%[5]d::int[]) for share of t)`,
		structure.Columns(t.Written(), "t."), of, t.Name.SQL(), r.where(), len(r.args())+1)
	for _, n := range group {
		fmt.Fprintf(&b, `, to_%d as (insert into %s (%s) select %[3]s from batch where "kiloshard shard" = %[1]d on conflict do nothing)`,
			n, t.At(mirror.Hidden(shards.Number(n))).SQL(), written)
	}
	b.WriteString(" select count(*) from batch")
	return b.String()
}
