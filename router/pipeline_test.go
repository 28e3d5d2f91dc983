package router_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
)

// Each of these is asked with a number that is its own, and tells it from its answer.
var riddles = []struct {
	name string
	ask  func(ctx context.Context, s router.Shard, n int64) error
}{
	{"a row", func(ctx context.Context, s router.Shard, n int64) error {
		var owner, got int64
		err := s.QueryRow(ctx, `select owner, $1::int8 from photos where id = 1`, n).Scan(&owner, &got)
		return same3(err, owner, int64(s.Number()), got, n)
	}},
	{"many rows", func(ctx context.Context, s router.Shard, n int64) error {
		rows, err := s.Query(ctx, `select owner + $1::int8 + i from photos, generate_series(0, $2::int) i where id = 1`, n, n%50)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		for i, got := range all {
			err = errors.Join(err, same3(nil, got, int64(s.Number())+n+int64(i), 0, 0))
		}
		return same3(err, int64(len(all)), n%50+1, 0, 0)
	}},
	{"text and null", func(ctx context.Context, s router.Shard, n int64) error {
		var text, none *string
		err := s.QueryRow(ctx, `select title || ' ' || $1::text, null::text from photos where id = 1`, fmt.Sprint(n)).Scan(&text, &none)
		if err == nil && (none != nil || text == nil || *text != fmt.Sprintf("of shard %d %d", s.Number(), n)) {
			err = fmt.Errorf("got %v, %v", text, none)
		}
		return err
	}},
	{"an error", func(ctx context.Context, s router.Shard, n int64) error {
		err := s.QueryRow(ctx, `select $1::int8 / (owner - owner) from photos`, n).Scan(new(int64))
		return isSQLState(err, "22012")
	}},
	{"an error after rows", func(ctx context.Context, s router.Shard, n int64) error {
		rows, err := s.Query(ctx, `select 10 / (3 - i) from generate_series(0, 3) i where i + $1::int8 is not null`, n)
		if err == nil {
			_, err = pgx.CollectRows(rows, pgx.RowTo[int])
		}
		return isSQLState(err, "22012")
	}},
	{"a syntax error", func(ctx context.Context, s router.Shard, n int64) error {
		return isSQLState(s.QueryRow(ctx, `select from from where $1`, n).Scan(nil), "42601")
	}},
	{"a wrong argument", func(ctx context.Context, s router.Shard, n int64) error {
		if err := s.QueryRow(ctx, `select $1::int8`, "no number").Scan(new(int64)); err == nil {
			return errors.New("no error")
		}
		return nil
	}},
	{"too few arguments", func(ctx context.Context, s router.Shard, n int64) error {
		if err := s.QueryRow(ctx, `select $1::int8 + $2::int8`, n).Scan(new(int64)); err == nil {
			return errors.New("no error")
		}
		return nil
	}},
	{"a megabyte", func(ctx context.Context, s router.Shard, n int64) error {
		if n%20 != 0 {
			return nil
		}
		rows, err := s.Query(ctx, `select $1::text || repeat('x', 1000) from photos, generate_series(1, 2500) where id = 1`, fmt.Sprint(n))
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		want := fmt.Sprint(n) + strings.Repeat("x", 1000)
		for _, got := range all {
			if got != want {
				return errors.New("a row of another's")
			}
		}
		return same3(err, int64(len(all)), 2500, 0, 0)
	}},
	{"a write", func(ctx context.Context, s router.Shard, n int64) error {
		tag, err := s.Exec(ctx, `insert into photos values ($1, $2, 'written') on conflict (id) do nothing`, 1000+n, s.Number())
		if err == nil && tag.RowsAffected() > 1 {
			err = fmt.Errorf("%v", tag)
		}
		return err
	}},
	{"a write that fails", func(ctx context.Context, s router.Shard, n int64) error {
		_, err := s.Exec(ctx, `insert into photos values ($1, 0, 'written')`, 1)
		return isSQLState(err, "23505")
	}},
	{"a transaction", func(ctx context.Context, s router.Shard, n int64) error {
		return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			var owner, got int64
			err := tx.QueryRow(ctx, `select owner, $1::int8 from photos where id = 1`, n).Scan(&owner, &got)
			return same3(err, owner, int64(s.Number()), got, n)
		})
	}},
}

func same3(err error, a, b, c, d int64) error {
	if err == nil && (a != b || c != d) {
		err = fmt.Errorf("got %d and %d, want %d and %d", a, c, b, d)
	}
	return err
}

func isSQLState(err error, state string) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == state {
		return nil
	}
	return fmt.Errorf("got %w, want an error %s", err, state)
}

// TestRiddles has many goroutines ask all kinds of things over few connections. Each checks its answer.
func TestRiddles(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{})
	var batched uint64 // by those whose calls may share a connection, unless the machine makes all of them slow
	for _, c := range []struct {
		name   string
		conns  int32
		alone  bool
		mode   string
		shards int
	}{
		{"reads together", 3, false, "cache_statement", shardCount},
		{"on one shard", 3, false, "cache_statement", 1},
		{"on one connection", 1, false, "cache_statement", 5},
		{"by themselves", 3, true, "cache_statement", 7},
		{"without prepared statements", 3, false, "exec", 7},
		{"few prepared statements", 3, false, "few", shardCount},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := options{on: db, conns: c.conns, alone: c.alone}
			if opts.dsn = execMode(c.mode); c.mode == "few" {
				opts.dsn, opts.statements = nil, 5
			}
			b, ctx := setup(t, opts)
			const workers, rounds = 48, 12
			var wait sync.WaitGroup
			for w := range workers {
				wait.Go(func() {
					for i := range rounds {
						n := int64(w*rounds + i)
						r := riddles[rand.IntN(len(riddles))]
						s := b.shard(t, rand.IntN(c.shards))
						if err := r.ask(ctx, s, n); err != nil {
							t.Errorf("%s, %s: %v", s, r.name, err)
							return
						}
					}
				})
			}
			wait.Wait()
			stats := b.Stats()[0]
			if batched += stats.Batched; c.alone && stats.Batched > 0 {
				t.Errorf("%+v", stats)
			}
			b.isFree(ctx, t)
		})
	}
	if batched == 0 {
		t.Error("no two calls were sent together")
	}
}

// TestCallersLeave has callers lose their patience at random. The others get their answers all the same, and never one
// of those who left.
func TestCallersLeave(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 2})
	var wait sync.WaitGroup
	for w := range 48 {
		wait.Go(func() {
			for i := range 60 {
				n, own := int64(w*1000+i), ctx
				leaves := w%3 == 0
				if leaves {
					short, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(2000))*time.Microsecond)
					defer cancel()
					own = short
				}
				r := riddles[rand.IntN(2)]
				err := r.ask(own, b.shard(t, i%4), n)
				switch {
				case leaves && own.Err() != nil:
				case !leaves && lostToOthers(err):
					// All callers of what a connection was sent had left but this one, which came too late to be told apart.
					t.Errorf("%s: %v", r.name, err)
				case err != nil:
					t.Errorf("%s: %v", r.name, err)
				}
			}
		})
	}
	wait.Wait()
	b.isFree(ctx, t)
}

func lostToOthers(err error) bool {
	return err != nil && strings.Contains(err.Error(), "connection was lost")
}

// TestServerEndsConnectionsUnderLoad kills sessions at random. A call either gets its own answer, or an error that is
// about the connection.
func TestServerEndsConnectionsUnderLoad(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 3})
	stop := make(chan struct{})
	var wait, killer sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				b.run(ctx, t, `select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and random() < 0.3`)
			}
		}
	})
	var answers, failures int
	var mu sync.Mutex
	goesOn := func(i int) bool { // until there was enough of both, however rarely the killer gets to it
		mu.Lock()
		defer mu.Unlock()
		return ctx.Err() == nil && (i < 8 || answers == 0 || failures == 0)
	}
	for w := range 24 {
		wait.Go(func() {
			for i := 0; goesOn(i); i++ {
				n := int64(w*1000 + i)
				r := riddles[rand.IntN(4)]
				err := r.ask(ctx, b.shard(t, i%4), n)
				var pgErr *pgconn.PgError
				ended := err != nil && (lostToOthers(err) || errors.As(err, &pgErr) && pgErr.Code == "57P01" || !errors.As(err, &pgErr))
				if err != nil && (!ended || strings.Contains(err.Error(), "got ")) && !strings.Contains(err.Error(), "22012") {
					t.Errorf("%s: %v", r.name, err)
				}
				mu.Lock()
				if err == nil {
					answers++
				} else {
					failures++
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	close(stop)
	killer.Wait()
	t.Logf("%d answers, %d calls lost their connection", answers, failures)
	if answers == 0 || failures == 0 {
		t.Error("the test proves nothing")
	}
	for range 5 { // sessions that were killed while they were idle
		if err := riddles[0].ask(ctx, b.shard(t, 1), 1); err == nil {
			break
		}
	}
	for n := range shardCount {
		if err := riddles[0].ask(ctx, b.shard(t, n), 1); err != nil && !lostToOthers(err) {
			t.Error(err)
		}
	}
}

// The result formats that one caller asks for are no other caller's.
func TestFormatsOfOneCaller(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	const query = `select owner, title from photos where id = @id`
	named := pgx.NamedArgs{"id": 1}
	familiar(ctx, t, b.shard(t, 9), query, named)
	s := b.shard(t, 1)
	read := func(args ...any) (format int16, err error) { // of the first column
		letGo := hold(ctx, t, s)
		var reading sync.WaitGroup
		reading.Go(func() {
			var rows pgx.Rows
			if rows, err = s.Query(ctx, query, args...); err == nil {
				rows.Close()
				format, err = rows.FieldDescriptions()[0].Format, rows.Err()
			}
		})
		b.waits(ctx, t, 1)
		letGo()
		reading.Wait()
		return format, err
	}
	for _, c := range []struct {
		args []any
		want int16
	}{
		{[]any{named, pgx.QueryResultFormats{pgx.TextFormatCode}}, pgx.TextFormatCode},
		{[]any{named}, pgx.BinaryFormatCode},
	} {
		if got, err := read(c.args...); err != nil || got != c.want {
			t.Errorf("%v: format %d, %v; expected %d", c.args, got, err, c.want)
		}
	}
	if _, err := read(named, pgx.QueryResultFormats{0, 0, 0}); err == nil {
		t.Error("three formats were good for two columns")
	}
	if _, err := read(named); err != nil {
		t.Errorf("another caller: %v", err)
	}
}
