package router_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A batch may be closed twice, as with a deferred Close. The second time its connection is somebody else's.
func TestBatchClosedTwice(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	var good, open pgx.Batch
	good.Queue(`select 1`)
	open.Queue(`begin`)
	for batch, fine := range map[*pgx.Batch]bool{&good: true, &open: false} {
		results := b.shard(t, 9).SendBatch(ctx, batch)
		first := results.Close()
		if (first == nil) != fine {
			t.Fatal(first)
		}
		err := b.shard(t, 10).Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `update photos set title = 'kept'`); err != nil {
				return err
			}
			if second := results.Close(); !errors.Is(second, first) {
				t.Errorf("first %v, then %v", first, second)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{conns: 1, dsn: execMode(mode)})
			s := b.shard(t, 9)
			var calls []string
			var batch pgx.Batch
			batch.Queue(`insert into photos values ($1, $2, 'two')`, 2, 9).Exec(func(tag pgconn.CommandTag) error {
				calls = append(calls, tag.String())
				return nil
			})
			batch.Queue(`update photos set title = 'no callback'`)
			batch.Queue(`select title from photos where id = @id`, pgx.NamedArgs{"id": 2}).QueryRow(func(row pgx.Row) error {
				var title string
				err := row.Scan(&title)
				calls = append(calls, title)
				return err
			})
			batch.Queue(`select id from photos order by id`).Query(func(rows pgx.Rows) error {
				ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
				if !slices.Equal(ids, []int64{1, 2}) {
					t.Errorf("ids %v", ids)
				}
				return err
			})
			before := snapshot(&batch)
			results := s.SendBatch(ctx, &batch)
			if err := errors.Join(results.Close(), results.Close()); err != nil {
				t.Fatal(err)
			}
			if want := []string{"INSERT 0 1", "no callback"}; !slices.Equal(calls, want) {
				t.Errorf("callbacks %q, want %q", calls, want)
			}
			if !reflect.DeepEqual(before, snapshot(&batch)) {
				t.Error("the batch was changed")
			}
			if results.Tx() != nil {
				t.Error("a transaction out of nowhere")
			}
			b.isFree(ctx, t)
		})
	}
}

// snapshot returns what a caller can see of a batch.
func snapshot(batch *pgx.Batch) (seen []any) {
	for _, q := range batch.QueuedQueries {
		seen = append(seen, q.SQL, slices.Clone(q.Arguments))
	}
	return seen
}

func TestBatchReadByHand(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{})
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			b, ctx := setup(t, options{on: db, conns: 1, dsn: execMode(mode)})
			readByHand(ctx, t, b)
		})
	}
}

func readByHand(ctx context.Context, t *testing.T, b *testBundle) {
	t.Helper()
	s := b.shard(t, 9)
	var batch pgx.Batch
	for range 2 {
		batch.Queue(`select n from generate_series(1, 1000) n`)
	}
	batch.Queue(`delete from photos`)
	batch.Queue(`select count(*) from photos`)
	batch.Queue(`select 'not read'`)
	for _, round := range []string{"new statements", "known statements"} {
		results := s.SendBatch(ctx, &batch)
		var first, count int
		rows, err := results.Query()
		if err != nil || !rows.Next() {
			t.Fatal(round, err)
		}
		if err := results.QueryRow().Scan(&first); err != nil || first != 1 { // the rows before are abandoned
			t.Errorf("%s: %d, %v", round, first, err)
		}
		if tag, err := results.Exec(); err != nil || !tag.Delete() {
			t.Errorf("%s: %s, %v", round, tag, err)
		}
		if err := results.QueryRow().Scan(&count); err != nil || count != 0 {
			t.Errorf("%s: %d, %v", round, count, err)
		}
		if err := results.Close(); err != nil {
			t.Errorf("%s: %v", round, err)
		}
		if _, err := results.Exec(); err == nil {
			t.Errorf("%s: closed results have another", round)
		}
	}
	results := s.SendBatch(ctx, &pgx.Batch{})
	if _, err := results.Exec(); err == nil {
		t.Error("an empty batch has a result")
	}
	if err := results.Close(); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
	b.isFree(ctx, t)
}

func TestBatchWithError(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		sql     string
		args    []any
		reached bool // the callback before the error
		want    string
	}{
		{"when it runs", `select 1/(id-1) from photos`, nil, true, "22012"},
		{"in a constraint", `insert into photos values ($1)`, []any{1}, true, "23505"},
		{"when it is prepared", `select * from nowhere`, nil, false, "42P01"},
		{"in its arguments", `select $1::int`, []any{true}, false, "failed to encode"},
		{"in their number", `select $1::int`, nil, false, "expected 1 arguments"},
	}
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 9)
	for _, test := range tests {
		var batch pgx.Batch
		reached, passed := false, false
		batch.Queue(`insert into photos values (2)`).Exec(func(pgconn.CommandTag) error { reached = true; return nil })
		batch.Queue(test.sql, test.args...)
		batch.Queue(`select 1`).QueryRow(func(pgx.Row) error { passed = true; return nil })
		err := s.SendBatch(ctx, &batch).Close()
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "shard 9 (shard_00009 on pg-a): ") {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
		if reached != test.reached || passed {
			t.Errorf("%s: callback before called: %t, after: %t", test.name, reached, passed)
		}
		var count int
		if err := s.QueryRow(ctx, `select count(*) from photos`).Scan(&count); err != nil || count != 1 {
			t.Errorf("%s: %d rows, %v", test.name, count, err)
		}
	}

	var batch pgx.Batch
	mine := errors.New("mine")
	batch.Queue(`select 1/0`).Query(func(rows pgx.Rows) error { // as in pgx, the first one sees its error
		rows.Close()
		if rows.Err() == nil {
			t.Error("the callback got no error")
		}
		return mine
	})
	if err := s.SendBatch(ctx, &batch).Close(); err == nil || errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
	batch = pgx.Batch{}
	batch.Queue(`select 1`).QueryRow(func(pgx.Row) error { return mine })
	if err := s.SendBatch(ctx, &batch).Close(); !same(err, mine) {
		t.Errorf("a callback's error came as %v", err)
	}
	batch = pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{})
	if err := s.SendBatch(ctx, &batch).Close(); err == nil || !strings.Contains(err.Error(), "use BeginTx of the shard") {
		t.Errorf("got %v", err)
	}
	b.isFree(ctx, t)
}

func TestDeferredConstraint(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	b.run(ctx, t, `alter table shard_00009.photos add constraint one_title unique (title) deferrable initially deferred`)
	s := b.shard(t, 9)
	const sql = `insert into photos values ($1, $2, 'of shard 9')`
	isUnique := func(err error) bool {
		pgErr := new(pgconn.PgError)
		return errors.As(err, &pgErr) && pgErr.Code == "23505"
	}
	if _, err := s.Exec(ctx, sql, 2, 9); !isUnique(err) {
		t.Errorf("Exec: %v", err)
	}
	if err := s.QueryRow(ctx, sql+` returning id`, 2, 9).Scan(new(int64)); !isUnique(err) {
		t.Errorf("QueryRow: %v", err)
	}
	var batch pgx.Batch
	batch.Queue(sql, 2, 9)
	if err := s.SendBatch(ctx, &batch).Close(); !isUnique(err) {
		t.Errorf("SendBatch: %v", err)
	}
	err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, sql, 2, 9); return err })
	if !isUnique(err) {
		t.Errorf("Tx: %v", err)
	}
	b.isFree(ctx, t)
}
