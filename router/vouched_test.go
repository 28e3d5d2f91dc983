package router_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// vouched are reads by their words, and whether the catalog vouches for what they call.
var vouched = map[string]bool{
	`select owner from photos where id = $1`:                              true,
	`select p.owner, lower(p.title) from photos p where id = $1`:          true,
	`select count(*) from photos p join photos q using (id) where $1 > 0`: true,
	`select id from plain where id = $1`:                                  true,
	`select id from nested where id = $1`:                                 true,
	`select chance from chance where $1 > 0`:                              true,
	`select relname from pg_class where oid = $1::int8`:                   true,
	`select count(*) from pg_stat_activity where pid = $1`:                true,
	`select id from guarded where id = $1`:                                false, // a policy
	`select path from sets where $1 > 0`:                                  false, // set_config
	`select told from tells where $1 > 0`:                                 false, // pg_notify
	`select locked from locks where $1 > 0`:                               false, // an advisory lock
	`select n from numbers where $1 > 0`:                                  false, // nextval
	`select n from calls where $1 > 0`:                                    false, // a function of ours
	`select n from calls_nested where $1 > 0`:                             false,
	`select id from compares where id = $1`:                               false, // an operator of ours
	`select p.secret from photos p where id = $1`:                         false, // a function of ours, called as a column
	`select id from photos where title = $1::int8::checked::text`:         false, // a domain
	`select id from photos where abs(photos) > $1`:                        false, // a function of ours with a name of Postgres's
}

const vouchedObjects = `create function public.mine() returns int language plpgsql stable as $$ begin return 1; end $$;
create function public.mine(text, text) returns bool language sql immutable as $$ select true $$;
create operator public.=== (function = public.mine, leftarg = text, rightarg = text);
set search_path = shard_00001;
create view plain as select id, upper(title) as title from photos where id > 0;
create view nested as select * from plain;
create view chance as select random() as chance, clock_timestamp() from photos;
create view sets as select set_config('a.b', 'c', true) as path from photos;
create view tells as select pg_notify('a', 'b')::text as told from photos;
create view locks as select pg_try_advisory_lock(1) as locked from photos;
create sequence numbered;
create view numbers as select nextval('numbered') as n from photos;
create view calls as select public.mine() as n from photos;
create view calls_nested as select * from calls;
create view compares as select * from photos where title operator(public.===) 'x';
create table guarded (id int8);
create policy p on guarded using (public.mine() > 0);
create function secret(photos) returns int language sql as $$ select 1 $$;
create function abs(photos) returns int language sql as $$ select 1 $$;
create function even(int8) returns bool language sql immutable as $$ select true $$;
create domain checked as int8 check (even(value))`

// A read may run more than once only if the catalog vouches for all that it calls. It is asked when a statement is prepared; where none is,
// once it has come a few times.
func TestVouchedReads(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{conns: 1, dsn: execMode(mode)})
			b.run(ctx, t, vouchedObjects)
			s := b.shard(t, 1)
			for sql, want := range vouched {
				for range 5 {
					rows, err := s.Query(ctx, sql, int64(1))
					if err == nil {
						rows.Close()
						err = rows.Err()
					}
					if err != nil {
						t.Fatalf("%s: %v", sql, err)
					}
				}
				if got := s.Repeats(sql); got != want {
					t.Errorf("%s: got %t", sql, got)
				}
			}
		})
	}
}

// TestVouchedByName has the text of a statement be another one than the server gets.
func TestVouchedByName(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	const sql = `select owner from photos where id = @id`
	if err := s.QueryRow(ctx, sql, pgx.NamedArgs{"id": 1}).Scan(new(int64)); err != nil {
		t.Fatal(err)
	}
	if !s.Repeats(sql) {
		t.Error("the catalog vouches for a text without its names only")
	}
}

// makeEffect makes a view of shard 1 with a function that a read-only transaction does not hold back: it adds a line to a file, and waits. effects counts
// the lines.
func (b *testBundle) makeEffect(ctx context.Context, t *testing.T) (effects func() int) {
	t.Helper()
	b.run(ctx, t, `create function public.effect() returns float language plpgsql as $$ begin
execute format('copy (select 1) to program %L', 'cat >> effects_' || current_database());
perform pg_sleep(0.3); return 1; end $$;
create view shard_00001.effects as select public.effect() as n from shard_00001.photos limit 1`)
	return func() (n int) {
		if err := b.plain.QueryRow(ctx, `select length(pg_read_file('effects_' || current_database())) / 2`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// A read that has an effect has it once: its callers do not share a transaction that is given up, and it is not sent again after its answer
// was lost.
func TestEffectsHappenOnce(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 2})
	effects := b.makeEffect(ctx, t)
	s := b.shard(t, 1)
	const sql = `select n from effects where $1 > 0`
	read := func() error { return s.QueryRow(ctx, sql, int64(1)).Scan(new(float64)) }
	for range 4 {
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	if got := effects(); got != 4 {
		t.Errorf("4 calls had %d effects", got)
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if err := read(); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if got := effects(); got != 12 {
		t.Errorf("12 calls had %d effects", got)
	}
	lost := make(chan error)
	go func() { lost <- read() }()
	eventually(ctx, t, func() bool { return effects() == 13 })
	b.run(ctx, t, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like '%effects where%' and pid <> pg_backend_pid()`)
	if err := <-lost; err == nil || !errors.Is(err, router.ErrLost) {
		t.Errorf("got %v, expected that the answer is lost", err)
	}
	time.Sleep(500 * time.Millisecond) // by then it would have run again
	if got := effects(); got != 13 {
		t.Errorf("13 calls had %d effects", got)
	}
}

// A group that is late is cancelled, and has ended before one of its reads runs again.
func TestLateGroupHasEnded(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 4})
	s := b.shard(t, 1)
	sql, unlock := lockTable(ctx, t, s)
	waiting := func() (n int) {
		const count = `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query = $1`
		if err := b.plain.QueryRow(ctx, count, sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := b.groupOf(ctx, t, 3, 10, func() {
		if err := s.QueryRow(ctx, sql).Scan(nil); err != nil {
			t.Error(err)
		}
	})
	eventually(ctx, t, func() bool { return waiting() > 0 })
	for range 20 {
		if n := waiting(); n > 1 {
			t.Errorf("the read of one caller waits for the lock %d times", n)
		}
		time.Sleep(5 * time.Millisecond)
	}
	unlock()
	first.Wait()
}
