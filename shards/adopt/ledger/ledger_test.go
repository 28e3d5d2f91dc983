package ledger_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/tables"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// bundle is a database that is adopted.
type bundle struct {
	t    *testing.T
	host shards.Host
	conn *pgx.Conn
}

// setup returns an empty database in which the statements were run.
func setup(t *testing.T, statements string) *bundle {
	t.Helper()
	b := &bundle{t: t, host: shardtest.Hosts(t, 1)[0]}
	b.run(statements)
	return b.as(b.host)
}

// as is the same database with a session of another host.
func (b *bundle) as(host shards.Host) *bundle {
	b.t.Helper()
	conn, err := ledger.Open(b.t.Context(), host)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { ledger.Close(context.Background(), conn) })
	return &bundle{b.t, host, conn}
}

// run runs statements as the superuser.
func (b *bundle) run(statements string) {
	b.t.Helper()
	if _, err := pgtest.Connect(b.t, b.host.ConnString()).PgConn().Exec(b.t.Context(), statements).ReadAll(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) install() {
	b.t.Helper()
	adoption := ledger.Adoption{Shards: 4, Strategy: "key % 4", File: "key: a.b.c\n", Structure: "old"}
	if _, err := ledger.Install(b.t.Context(), b.conn, adoption); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) read() *ledger.State {
	b.t.Helper()
	s, err := ledger.Read(b.t.Context(), b.conn)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func TestLedger(t *testing.T) {
	t.Parallel()
	b := setup(t, "")
	ctx := t.Context()
	if _, err := ledger.Read(ctx, b.conn); !errors.Is(err, ledger.ErrNone) {
		t.Fatalf("without a ledger: %v", err)
	}
	b.install()
	b.install()
	if s := b.read(); s.Gate != ledger.GateViews || len(s.All) != 4 || s.Shards != 4 || s.File != "key: a.b.c\n" || s.At(ledger.StageViews).Len() != 4 {
		t.Errorf("after Install: %+v", s)
	}
	if err := ledger.SetViews(ctx, b.conn, 2, "print"); err != nil {
		t.Error(err)
	}
	if err := ledger.SetStage(ctx, b.conn, 2, ledger.StageViews, ledger.StageCopying); err != nil {
		t.Error(err)
	}
	changed := (*ledger.ChangedError)(nil)
	for _, err := range []error{
		ledger.SetStage(ctx, b.conn, 2, ledger.StageViews, ledger.StageCopying),
		ledger.SetViews(ctx, b.conn, 2, "other"),
		ledger.SetGate(ctx, b.conn, ledger.GateClosed, ledger.GateTables),
		ledger.SetPlan(ctx, b.conn, ledger.Adoption{Shards: 5}),
		ledger.SetStage(ctx, b.conn, 9, ledger.StageViews, ledger.StageCopying),
	} {
		if !errors.As(err, &changed) {
			t.Errorf("got %v, expected a ChangedError", err)
		}
	}
	if err := ledger.SetGate(ctx, b.conn, ledger.GateViews, ledger.GateClosed); err != nil {
		t.Error(err)
	}
	if err := ledger.SetPlan(ctx, b.conn, ledger.Adoption{Shards: 4}); !errors.As(err, &changed) {
		t.Errorf("another plan at gate closed: %v", err)
	}
	s := b.read()
	if s.Gate != ledger.GateClosed || s.All[2].Stage != ledger.StageCopying || s.All[2].Views != "print" {
		t.Errorf("after the changes: %+v", s)
	}
	history, err := ledger.History(ctx, b.conn)
	if err != nil || len(history) != 2 || history[1].What != "gate views became closed" {
		t.Errorf("the history is %+v, %v", history, err)
	}
	if err := ledger.Remove(ctx, b.conn); err != nil {
		t.Error(err)
	}
	if _, err := ledger.Read(ctx, b.conn); !errors.Is(err, ledger.ErrNone) {
		t.Errorf("after Remove: %v", err)
	}
}

// TestLock holds that one session at a time has the lock, and that its holder finds out when it has lost it.
func TestLock(t *testing.T) {
	t.Parallel()
	b := setup(t, "")
	first, err := ledger.Acquire(t.Context(), b.host)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Check(t.Context(), b.conn); err != nil {
		t.Error(err)
	}
	if _, err := ledger.Acquire(t.Context(), b.host); !errors.Is(err, ledger.ErrBusy) || !strings.Contains(err.Error(), "kiloshard adopt") {
		t.Errorf("a second lock: %v", err)
	}
	b.run(`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`)
	if second, err := ledger.Acquire(t.Context(), b.host); err != nil {
		t.Error(err)
	} else {
		defer second.Release(context.Background())
	}
	if err := first.Check(t.Context(), b.conn); err == nil {
		t.Error("a lost lock is held")
	}
	first.Release(t.Context())
}

// TestOldWrites holds that a write without a shard's path is recorded by table, role and application, that sessions do not wait for each
// other, and that what is rolled back is not recorded.
func TestOldWrites(t *testing.T) {
	t.Parallel()
	b := setup(t, "create table public.a (n int); create table public.b (n int); create schema shard_00003")
	b.install()
	cluster := shardtest.MapConfig(4, []shards.Host{b.host})
	m, err := cluster.Map()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"a", "b"} {
		b.run(`create trigger w before insert or update or delete or truncate on public.` + table + ` for each statement when (` +
			ledger.OldWay(m) + `) execute function kiloshard_adopt.record_old_write(); alter table public.` + table + ` enable always trigger w`)
	}
	one, two := pgtest.Connect(t, b.host.ConnString()), pgtest.Connect(t, b.host.ConnString())
	exec := func(conn *pgx.Conn, statements string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	exec(one, "set search_path = "+m.Schema(3)+", public; insert into a values (1)") // a shard's path
	exec(one, "set search_path = public; set application_name = 'one'; begin; insert into a values (2)")
	exec(two, "set application_name = 'two'; set session_replication_role = replica; begin isolation level serializable; insert into a values (3); update a set n = 4; commit")
	exec(two, "begin; insert into b values (1); rollback; begin isolation level repeatable read; delete from a; commit")
	exec(one, "commit; truncate a; insert into a values (4)")
	found, err := ledger.OldWrites(t.Context(), b.conn)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range found {
		got = append(got, w.Table+" "+w.Application)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"public.a one", "public.a two"}) {
		t.Errorf("recorded %q", got)
	}
	var rows int
	if err := b.conn.QueryRow(t.Context(), "select count(*) from kiloshard_adopt.old_writes").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("%d rows, %v; expected 2", rows, err)
	}
	exec(two, "insert into b values (1)")
	if found, err := ledger.OldWrites(t.Context(), b.conn); err != nil || len(found) != 3 {
		t.Errorf("after a rollback: %v, %v", found, err)
	}
	// As sessions of one statement each do: the setting is empty.
	exec(two, "insert into b values (2)")
	exec(two, `do $$ begin for n in 1..100 loop
		for m in 1..200 loop perform set_config('kiloshard_adopt.t' || 'b'::regclass::oid, '', false); insert into b values (m); end loop;
		update kiloshard_adopt.old_writes set at = at - interval '1 hour' where at > now() - interval '1 hour'; commit; end loop; end $$`)
	if err := b.conn.QueryRow(t.Context(), "select count(*) from kiloshard_adopt.old_writes").Scan(&rows); err != nil || rows > 15000 {
		t.Errorf("%d rows of 20000 writes, %v", rows, err)
	}
}

// TestOwn holds that roles with CREATEROLE, which own their databases, can make functions of the role kiloshard_adopt and drop them, and
// that nobody is a member afterwards. From Postgres 16 on the second of them has to be given the role that the first has made.
func TestOwn(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, localpg.Config{})
	for _, adopter := range []string{"first", "second"} {
		text, err := server.CreateDatabase(t.Context(), adopter)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := dsn.Parse(text)
		if err != nil {
			t.Fatal("the server's DSN cannot be parsed")
		}
		super := &bundle{t: t, host: shards.Host{Name: "pg-a", DSN: text}}
		super.run(`create role ` + adopter + ` login createrole password '` + parsed.Get("password") + `'; alter database ` + adopter + ` owner to ` + adopter)
		own := super.as(shards.Host{Name: "pg-a", DSN: dsn.With(text, "user", adopter)})
		if adopter == "second" && own.version() >= 160000 {
			_, err := ledger.Install(t.Context(), own.conn, ledger.Adoption{Shards: 1})
			if err == nil || !strings.Contains(err.Error(), "GRANT kiloshard_adopt TO") {
				t.Errorf("got %v", err)
			}
			super.run(`grant kiloshard_adopt to second with admin true, inherit false, set false`)
		}
		own.install()
		for _, text := range []string{
			`create function kiloshard_adopt.f() returns int language sql security definer set search_path = pg_catalog, pg_temp as 'select 1'; alter function kiloshard_adopt.f() owner to kiloshard_adopt`,
			`set local role kiloshard_adopt; drop function kiloshard_adopt.f(); reset role`,
		} {
			err := pgx.BeginFunc(t.Context(), own.conn, func(tx pgx.Tx) error {
				return ledger.Own(t.Context(), tx, func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol)
					return err
				})
			})
			if err != nil {
				t.Error(err)
			}
		}
		if err := ledger.CheckRole(t.Context(), mustBegin(t, own.conn)); err != nil {
			t.Error(err)
		}
	}
}

func (b *bundle) version() (n int) {
	b.t.Helper()
	if err := b.conn.QueryRow(b.t.Context(), "select current_setting('server_version_num')::int").Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

func (b *bundle) database() (name string) {
	b.t.Helper()
	if err := b.conn.QueryRow(b.t.Context(), "select current_database()").Scan(&name); err != nil {
		b.t.Fatal(err)
	}
	return name
}

func mustBegin(t *testing.T, conn *pgx.Conn) pgx.Tx {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// TestForeignLedger holds that nothing of a ledger that another role made is read.
func TestForeignLedger(t *testing.T) {
	t.Parallel()
	b := setup(t, "")
	name := "mallory_" + strings.TrimPrefix(b.database(), "kiloshard_")
	b.run(`create role "` + name + `"; create schema kiloshard_adopt authorization "` + name + `"`)
	t.Cleanup(func() {
		if _, err := b.conn.Exec(context.Background(), `drop schema kiloshard_adopt cascade; drop role "`+name+`"`, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Error(err)
		}
	})
	var field *shards.FieldError
	if _, err := ledger.Read(t.Context(), b.conn); !errors.As(err, &field) || !strings.Contains(err.Error(), "belongs to role mallory") {
		t.Errorf("got %v", err)
	}
	if _, err := ledger.Install(t.Context(), b.conn, ledger.Adoption{Shards: 1}); !errors.As(err, &field) {
		t.Errorf("got %v", err)
	}
}

func TestStructure(t *testing.T) {
	t.Parallel()
	b := setup(t, `create table users (id bigserial primary key, email text not null unique); create table gone (id int)`)
	names := []tables.Name{{Schema: "public", Table: "users"}, {Schema: "public", Table: "gone"}, {Schema: "public", Table: "late"}}
	structure := func() string {
		t.Helper()
		text, err := ledger.Structure(t.Context(), b.conn, names)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := structure()
	if got := ledger.Changes(before, structure()); len(got) > 0 {
		t.Errorf("nothing has changed: %q", got)
	}
	b.run(`alter table users add title text default 'x'; alter table users alter email drop not null; drop table gone; create table late (id int);
		create index by_title on users (title); grant select on users to public`)
	want := []string{
		"public.gone: table was dropped: r p, owner postgres",
		"public.late: table was added: r p, owner postgres",
		`public.users: column email is text collate "default", was text collate "default" not null`,
		`public.users: column title was added: text collate "default" default 'x'::text`,
		"public.users: index by_title was added: CREATE INDEX by_title ON public.users USING btree (title)",
		"public.users: rights public was added: SELECT",
	}
	if got := ledger.Changes(before, structure()); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// The lock is free when Release returns, and not only when the server has noticed that the session ended.
func TestReleased(t *testing.T) {
	t.Parallel()
	b := setup(t, "")
	for range 100 {
		lock, err := ledger.Acquire(t.Context(), b.host)
		if err != nil {
			t.Fatal(err)
		}
		lock.Release(t.Context())
		var locks int
		const query = `select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`
		if err := b.conn.QueryRow(t.Context(), query).Scan(&locks); err != nil || locks > 0 {
			t.Fatalf("%d locks, %v", locks, err)
		}
	}
}
