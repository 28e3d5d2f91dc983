package router_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// randomStatements is how many statements TestRandomSQL sends; KILOSHARD_RANDOM_STATEMENTS says another number.
const randomStatements = 900

// randomSQL makes up SQL for a shard. What it writes carries the number of the shard.
type randomSQL struct {
	*rand.Rand
	*randomCounts
	shard shards.Number
}

// randomCounts are how many rows were read, and how many writes have succeeded.
type randomCounts struct{ answered, written atomic.Int64 }

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// read is a statement that returns owners, which all have to be the shard's.
func (r randomSQL) read() string {
	return r.comment() + pick(r.Rand,
		`select owner from photos limit 3`,
		`select owner from photos where id = 1`,
		`select max(owner) from photos`,
		`select owner from photos, public.wander() where id = 1`,
		`select owner from public.moving, photos where id = 1`,
		`with p as (select owner from photos limit 2) select owner from p`,
		`table owners`,
		`select owner from owners`,
		`select owner from photos where id = 1 for update`,
	)
}

// write is a statement that writes the shard's number.
func (r randomSQL) write() string {
	return r.comment() + pick(r.Rand,
		fmt.Sprintf(`update photos set title = '%d'`, r.shard),
		fmt.Sprintf(`insert into photos values (next_id(), %d, '%[1]d')`, r.shard),
		fmt.Sprintf(`do $$ begin update photos set title = '%d'; end $$`, r.shard),
		fmt.Sprintf(`with u as (update photos set title = '%d' returning owner) select owner from u`, r.shard),
		fmt.Sprintf(`call public.write_after(%d)`, r.shard),
		fmt.Sprintf(`do $$ begin commit; update photos set title = '%d'; end $$`, r.shard),
		fmt.Sprintf(`do $$ begin rollback; update photos set title = '%d'; end $$`, r.shard),
		fmt.Sprintf(`with s as (select set_config('random.shard', '%d', true)) delete from photos using s where id <> 1`, r.shard),
		fmt.Sprintf(`with i as (insert into photos values (next_id(), %d, '%[1]d') returning 1) select public.wander() from i`, r.shard),
	)
}

// mess is a statement that does something to the session or to the transaction.
func (r randomSQL) mess() string {
	other := fmt.Sprintf("shard_%05d", r.IntN(shardCount))
	return r.comment() + pick(r.Rand,
		`select public.wander()`, `select public.wander_local()`, `select public.reset()`, `select public.atomic()`, `select public.keep()`,
		`set search_path = `+other, `set local search_path = `+other, `set session search_path to '`+other+`', public`,
		`reset all`, `reset search_path`, `set schema '`+other+`'`, `discard all`, `discard plans`, `deallocate all`,
		`set role random_role`, `reset role`, `set session authorization default`, `set transaction read only`,
		`begin`, `commit`, `rollback`, `abort and chain`, `commit and chain`, `end`, `start transaction`, `savepoint a`, `rollback to a`, `release a`,
		`prepare transaction 'random'`, `rollback prepared 'random'`,
		`create temp table if not exists photos as select * from `+other+`.photos`, `create temp view owners as select owner from `+other+`.photos`,
		`drop table if exists pg_temp.photos`, `do $$ begin perform set_config('search_path', '`+other+`', false); commit; end $$`,
		`call public.commits()`, `select 'commit; rollback'`, `select 1/0`, `select`, ``, `;`, `create function pg_temp.x() returns int language sql as 'select 1'`,
		fmt.Sprintf(`prepare p%d as update photos set title = '%[1]d'`, r.shard), fmt.Sprintf(`execute p%d`, r.shard), // others' stay on the session
		`declare c cursor with hold for select owner from photos`, `close c`,
	)
}

func (r randomSQL) comment() string {
	return pick(r.Rand, "", "", "", "-- it's; commit\n", "/* commit; */ ", "/* /* */ */ ", `/* ' */ `, "/* $$ */ ", " \n\t")
}

func (r randomSQL) any() string { return pick(r.Rand, r.read, r.write, r.mess)() }

// text is one statement, or a few in a string.
func (r randomSQL) text() string {
	parts := make([]string, 1+r.IntN(3))
	for i := range parts {
		parts[i] = r.any()
	}
	return strings.Join(parts, pick(r.Rand, ";", " ; ", ";\n"))
}

// owners reads rows to their end and checks those of the reads.
func (r randomSQL) owners(rows pgx.Rows, sql string) error {
	defer rows.Close()
	for rows.Next() {
		var owner *int64
		if err := rows.Scan(&owner); err == nil && owner != nil {
			r.answered.Add(1)
			if *owner != int64(r.shard) {
				return fmt.Errorf("shard %d was answered by shard %d: %s", r.shard, *owner, sql)
			}
		}
	}
	return nil
}

// wrote counts a write that succeeded.
func (r randomSQL) wrote(err error) {
	if err == nil {
		r.written.Add(1)
	}
}

// withArguments is a write or a read with arguments, in one of the ways that a handle has.
func (r randomSQL) withArguments(ctx context.Context, s router.Shard) error {
	own := strconv.Itoa(int(r.shard))
	switch r.IntN(4) {
	case 0:
		_, err := s.Exec(ctx, `update photos set title = $1`, own)
		r.wrote(err)
	case 1:
		var id int64
		r.wrote(s.QueryRow(ctx, `insert into photos values (next_id(), $1, $2) returning id`, int64(r.shard), own).Scan(&id))
	case 2:
		id, err := s.NextID(ctx)
		if err == nil {
			_, err = s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "owner", "title"}, pgx.CopyFromRows([][]any{{int64(id), int64(r.shard), own}}))
		}
		r.wrote(err)
	default:
		rows, _ := s.ReadOnly(router.Reads{}).Query(ctx, `select owner from photos where id = $1`, 1)
		return r.owners(rows, "a reader")
	}
	return nil
}

// do makes one call to the shard. Its error says that another shard was read. The server may refuse what it likes.
func (r randomSQL) do(ctx context.Context, s router.Shard) error {
	switch r.IntN(7) {
	case 0:
		_, _ = s.Exec(ctx, r.text())
	case 1:
		sql := r.read()
		rows, _ := s.Query(ctx, sql)
		return r.owners(rows, sql)
	case 2:
		_, err := s.Exec(ctx, r.write())
		r.wrote(err)
	case 5:
		return r.withArguments(ctx, s)
	case 3:
		_, _ = s.Exec(ctx, r.mess())
	case 4:
		var batch pgx.Batch
		var err error
		for range 1 + r.IntN(5) {
			sql := r.any()
			if r.IntN(2) == 0 {
				sql = r.read()
				batch.Queue(sql).Query(func(rows pgx.Rows) error {
					if bad := r.owners(rows, sql); bad != nil {
						err = bad
					}
					return nil
				})
				continue
			}
			batch.Queue(sql)
		}
		_ = s.SendBatch(ctx, &batch).Close()
		return err
	default:
		opts := pgx.TxOptions{IsoLevel: pick(r.Rand, "", pgx.RepeatableRead)}
		if r.IntN(4) == 0 {
			opts.BeginQuery = pick(r.Rand, `begin; `+r.any(), r.any()+`; begin`, `begin -- `+r.any(), r.text())
		}
		if r.IntN(4) == 0 {
			opts.CommitQuery = pick(r.Rand, `commit; `+r.any(), `commit`, r.text())
		}
		tx, err := s.BeginTx(ctx, opts)
		if err != nil {
			return nil
		}
		for range r.IntN(5) {
			if r.IntN(5) == 0 {
				if point, err := tx.Begin(ctx); err == nil {
					_, _ = point.Exec(ctx, r.any())
					_ = pick(r.Rand, point.Commit, point.Rollback)(ctx)
				}
				var batch pgx.Batch
				batch.Queue(r.any())
				batch.Queue(r.any())
				_ = tx.SendBatch(ctx, &batch).Close()
			}
			if sql := r.read(); r.IntN(2) == 0 {
				rows, _ := tx.Query(ctx, sql)
				if err := r.owners(rows, sql); err != nil {
					_ = tx.Rollback(ctx)
					return err
				}
				continue
			}
			_, _ = tx.Exec(ctx, r.text())
		}
		if r.IntN(2) == 0 {
			_ = tx.Commit(ctx)
		} else {
			_ = tx.Rollback(ctx)
		}
	}
	return nil
}

// Whatever SQL is thrown at shards that share few connections, no shard is ever read or written to by what was given to
// another one.
func TestRandomSQL(t *testing.T) {
	t.Parallel()
	for _, conns := range []int32{1, 3} {
		t.Run(fmt.Sprintf("%d connections", conns), func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{conns: conns})
			throwAt(ctx, t, b, b.reports(ctx, t))
		})
	}
}

// TestRandomSQLBehindPgBouncer does the same where the sessions are others' too.
func TestRandomSQLBehindPgBouncer(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{})
	b, ctx := setup(t, options{conns: 3, on: db, address: startPgBouncer(t, map[string]string{"default_pool_size": "3"}).Address(), dsn: execMode("exec")})
	throwAt(ctx, t, b, false)
}

// throwAt throws random SQL at shards. keeps says that statements are to go without an entry.
func throwAt(ctx context.Context, t *testing.T, b *testBundle, keeps bool) {
	t.Helper()
	statements := randomStatements
	if given := os.Getenv("KILOSHARD_RANDOM_STATEMENTS"); given != "" {
		var err error
		if statements, err = strconv.Atoi(given); err != nil {
			t.Fatalf("KILOSHARD_RANDOM_STATEMENTS: %q, expected how many", given)
		}
		ctx = t.Context() // that of the setup ends after minutes
	}
	b.run(ctx, t, `do $$ begin create role random_role; exception when duplicate_object or unique_violation then null; end $$;
create function public.wander() returns int language plpgsql as $$ begin perform set_config('search' || '_path', 'shard_00063', false); return 1; end $$;
create function public.wander_local() returns int language plpgsql as $$ begin set local search_path = shard_00062; return 1; end $$;
create function public.reset() returns int language plpgsql as $$ begin reset all; return 1; end $$;
create function public.atomic() returns int language sql begin atomic select set_config('search' || '_path', 'shard_00061', false); select 1; end;
create function public.keep() returns text language sql as $$ select set_config('search_path', current_setting('search_path'), false) $$;
create view public.moving as select public.wander() as moved;
create procedure public.write_after(n int) language plpgsql as $$ begin perform set_config('search_path', '', false); commit; execute 'update photos set title = ' || n; end $$;
create procedure public.commits() language plpgsql as $$ begin perform set_config('search_path', 'shard_00060', false); commit; end $$;
create table public.strays (shard text, what text, title text, query text);
create function public.audit() returns trigger language plpgsql security definer as $$ declare own int := right(tg_table_schema, 5); begin
	if tg_op = 'DELETE' then
		if current_setting('random.shard', true) is distinct from own::text then insert into public.strays values (tg_table_schema, tg_op, old.title, current_query()); end if;
	elsif new.title not in (own::text, 'of shard ' || own) or new.owner <> own then
		insert into public.strays values (tg_table_schema, tg_op, new.title, current_query());
	end if;
	return null; end $$;
create function public.later() returns trigger language plpgsql as $$ begin update photos set title = new.owner where id = 1; return null; end $$;
do $$ begin for n in 0..63 loop
	execute format('create trigger audit after insert or update or delete on shard_%1$s.photos for each row execute function public.audit();
		create constraint trigger later after insert on shard_%1$s.photos deferrable initially deferred for each row execute function public.later()', lpad(n::text, 5, '0'));
	execute format('create view shard_%1$s.owners as select owner from shard_%1$s.photos; grant usage on schema shard_%1$s to random_role; grant select, insert, update, delete on shard_%1$s.photos to random_role', lpad(n::text, 5, '0'));
end loop; end $$`)
	t.Cleanup(func() {
		_, _ = b.plain.Exec(context.WithoutCancel(ctx), `rollback prepared 'random'`) // there may be none
		b.run(context.WithoutCancel(ctx), t, `drop owned by random_role`)
	})
	seed := rand.Uint64()
	if given := os.Getenv("KILOSHARD_RANDOM_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("KILOSHARD_RANDOM_SEED: %q, expected a number", given)
		}
	}
	t.Logf("seed %d", seed)
	var counts randomCounts
	const workers = 6
	var wait sync.WaitGroup
	stop := make(chan struct{})
	var janitor sync.WaitGroup
	janitor.Go(func() { // a prepared transaction holds its locks
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				_, _ = b.plain.Exec(ctx, `rollback prepared 'random'`) // there may be none
			}
		}
	})
	for w := range workers {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			for range statements / workers {
				n := shards.Number(random.IntN(shardCount))
				if random.IntN(2) == 0 {
					n %= 3 // shards whose path a session is likely to have
				}
				short, cancel := context.WithTimeout(ctx, 2*time.Second) // callers may wait for each other's locks
				err := (randomSQL{random, &counts, n}).do(short, b.shard(t, int(n)))
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	close(stop)
	janitor.Wait()
	_, _ = b.plain.Exec(ctx, `rollback prepared 'random'`) // there may be none
	for n := range shardCount {
		var strange, rows int
		query := fmt.Sprintf(`select count(*) filter (where owner <> %d or title not in ('%[1]d', 'of shard %[1]d')), count(*) from shard_%05[1]d.photos`, n)
		if err := b.plain.QueryRow(ctx, query).Scan(&strange, &rows); err != nil {
			t.Fatal(err)
		}
		if strange > 0 {
			t.Errorf("shard %d has %d rows of others", n, strange)
		}
	}
	var strays string
	if err := b.plain.QueryRow(ctx, `select coalesce(string_agg(distinct format('%s of %L in %s by %s', what, title, shard, query), ', '), '') from public.strays`).Scan(&strays); err != nil || strays != "" {
		t.Errorf("rows were written for another shard: %s, %v", strays, err)
	}
	answered, written := counts.answered.Load(), counts.written.Load()
	if least := int64(statements / 20); answered < least || written < least {
		t.Errorf("%d rows were read and %d writes have succeeded, expected %d each at least: the test proves little", answered, written, least)
	}
	kept := b.Stats()[0].Kept
	if keeps && kept < uint64(statements/100) {
		t.Errorf("%d statements of %d went without an entry: the test proves little", kept, statements)
	}
	t.Logf("%d rows were read, and %d writes have succeeded; %d statements went without an entry", answered, written, kept)
}
