package session_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// bench is one session on a database with two shards, each with a table photos.
type bench struct {
	*testing.T
	*session.Session
	host *session.Host
}

func open(t *testing.T) bench {
	t.Helper()
	place := shardtest.Hosts(t, 1)[0]
	config, err := pgx.ParseConfig(place.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	session.WatchLeaving(&config.Config)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	const tables = `create schema shard_00001; create table shard_00001.photos (id int primary key);
		create schema shard_00002; create table shard_00002.photos (id int primary key)`
	if _, err := conn.Exec(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	h := &session.Host{Name: "pg-a", Mode: pgx.QueryExecModeCacheStatement, Statements: 8, Log: slog.New(slog.DiscardHandler), Texts: texts.NewCache(nil), ReadOnly: func() {}}
	h.Place.Store(&place)
	s, err := session.Open(t.Context(), conn, h)
	if err != nil {
		t.Fatal(err)
	}
	return bench{t, s, h}
}

func (b bench) shard(n shards.Number, schema string) *session.Shard {
	return &session.Shard{Number: n, Schema: schema, Path: schema + ", pg_temp", Host: b.host}
}

func (b bench) exec(at *session.Shard, sql string, args ...any) {
	b.Helper()
	if _, err := b.Exec(b.Context(), at.Scope(), sql, args); err != nil {
		b.Fatalf("%s: %s: %v", at.Schema, sql, err)
	}
}

// text asks for one value in a shard.
func (b bench) text(at *session.Shard, sql string) (value string) {
	b.Helper()
	rows, err := b.Query(b.Context(), at, nil, at.Scope(), sql, nil)
	if err == nil {
		value, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
	}
	if err != nil {
		b.Fatalf("%s: %s: %v", at.Schema, sql, err)
	}
	return value
}

// leftPath is the path that the session has between statements.
func (b bench) leftPath() (path string) {
	b.Helper()
	if err := b.Conn.QueryRow(b.Context(), "select pg_catalog.current_setting('search_path')").Scan(&path); err != nil {
		b.Fatal(err)
	}
	return path
}

// Statements of two shards take turns on one session: each in its own shard, prepared or not, and nothing is left in between.
func TestStatementsOfTwoShards(t *testing.T) {
	t.Parallel()
	b := open(t)
	one, two := b.shard(1, "shard_00001"), b.shard(2, "shard_00002")
	for id := range 3 {
		b.exec(one, "insert into photos values ($1)", 10+id)
		b.exec(two, "insert into photos values ($1)", 20+id)
		b.exec(one, "delete from photos where id = 20")
		if got := b.leftPath(); got != "" {
			t.Fatalf("the path %s is left", got)
		}
	}
	const all = "select string_agg(id::text, ' ' order by id) from photos"
	for range 2 { // the second time it is prepared
		if got := b.text(one, all); got != "10 11 12" {
			t.Errorf("shard 1 has %s", got)
		}
		if got := b.text(two, all); got != "20 21 22" {
			t.Errorf("shard 2 has %s", got)
		}
	}
}

// A statement for a shard that is not there fails, also if a table of that name is elsewhere.
func TestShardThatIsNotThere(t *testing.T) {
	t.Parallel()
	b := open(t)
	one := b.shard(1, "shard_00001")
	b.exec(one, "create table public.photos (id int)")
	b.exec(one, "insert into photos values (1)")
	b.exec(one, "alter schema shard_00001 rename to gone")
	for _, at := range []*session.Shard{one, b.shard(3, "shard_00003")} {
		_, err := b.Exec(t.Context(), at.Scope(), "insert into photos values (2)", nil)
		if err = at.Failed(err); !errors.Is(err, failure.ErrMoved) {
			t.Errorf("%v, expected an error that says that the shard has moved", err)
		}
		if err := b.CheckEntry(t.Context(), at); err == nil {
			t.Errorf("%s: the entry finds it", at.Schema)
		}
	}
	var rows int
	if err := b.Conn.QueryRow(t.Context(), "select (select count(*) from gone.photos) + (select count(*) from public.photos)").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, expected the first one alone: %v", rows, err)
	}
}

// held counts how often a transaction or a batch gives its connection back.
type held int

func (h *held) Release() { *h++ }

// What a transaction or a batch sets ends with it, and the connection is given back once.
func TestTransactionAndBatch(t *testing.T) {
	t.Parallel()
	b := open(t)
	one, two := b.shard(1, "shard_00001"), b.shard(2, "shard_00002")
	var back held
	tx, err := b.BeginTx(t.Context(), one, &back, 1, pgx.TxOptions{}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"set local work_mem = '77MB'", "insert into photos values (1)", "savepoint a", "insert into photos values (2)", "rollback to a"} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil || back != 1 {
		t.Fatalf("given back %d times: %v", back, err)
	}
	batch := &pgx.Batch{}
	batch.Queue("insert into photos values (3)").Exec(func(tag pgconn.CommandTag) error { return nil })
	batch.Queue("insert into photos values (4)")
	results, err := b.SendBatch(t.Context(), two, &back, batch)
	if err != nil {
		t.Fatal(err)
	}
	if err := results.Close(); err != nil || back != 2 {
		t.Fatalf("given back %d times: %v", back, err)
	}
	const all = "select string_agg(id::text, ' ' order by id) || ' ' || (current_setting('work_mem') = '77MB')::text from photos"
	if got := b.text(one, all); got != "1 false" {
		t.Errorf("shard 1 has %s", got)
	}
	if got := b.text(two, all); got != "3 4 false" {
		t.Errorf("shard 2 has %s", got)
	}
}

// Clean takes away what a caller has left on the session: settings, temporary tables, locks, what it has prepared.
func TestClean(t *testing.T) {
	t.Parallel()
	b := open(t)
	one := b.shard(1, "shard_00001")
	b.exec(one, "set work_mem = '77MB'; create temporary table mine (); select pg_advisory_lock(7); prepare p as select 1")
	b.Left = true // as the holder knows by the text
	b.Clean()
	const left = `select format('%s %s %s %s', current_setting('work_mem') = '77MB', to_regclass('pg_temp.mine') is not null,
		(select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
		(select count(*) from pg_prepared_statements where from_sql))`
	if got := b.text(one, left); got != "f f 0 0" {
		t.Errorf("left: setting, table, locks, byName: %s", got)
	}
	if got := b.leftPath(); got != "" {
		t.Errorf("the path %s is left", got)
	}
}
