package router_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
)

// leftovers are what a caller may leave on a session, and how that would show to the next one.
var leftovers = []struct{ name, leave, ask, want string }{
	{"a setting", `set work_mem = '7MB'`, `select current_setting('work_mem')`, "4MB"},
	{"a setting by a function", `select set_config('work_mem', '7MB', false)`, `select current_setting('work_mem')`, "4MB"},
	{"a search_path", `set search_path = shard_00063`, `select owner::text from photos where id = 1`, "1"},
	{"a search_path by a function", `select set_config('search_path', 'shard_00063', false)`, `select owner::text from photos where id = 1`, "1"},
	{"a role", `set role pg_monitor`, `select (current_user = session_user)::text`, "true"},
	{"a temporary table", `create temp table secrets as select 1`, `select count(*)::text from pg_class where relname = 'secrets'`, "0"},
	{"an advisory lock", `select pg_advisory_lock(4711)`, `select count(*)::text from pg_locks where locktype = 'advisory' and objid = 4711`, "0"},
	{"a temporary table by its schema", `create table pg_temp.secrets as select 1`, `select count(*)::text from pg_class where relname = 'secrets'`, "0"},
	{"a temporary view by its schema", `create or replace view pg_temp.secrets as select 1`, `select count(*)::text from pg_class where relname = 'secrets'`, "0"},
	{"a temporary table of a query", `select 1 as one into local temp secrets`, `select count(*)::text from pg_class where relname = 'secrets'`, "0"},
	{"an explained temporary table", `explain analyze create temp table secrets as select 1`, `select count(*)::text from pg_class where relname = 'secrets'`, "0"},
	{"a setting by a view", `update pg_settings set setting = '777' where name = 'work_mem'`, `select current_setting('work_mem')`, "4MB"},
	{"a prepared statement", `prepare secrets as select 1`, `select count(*)::text from pg_prepared_statements where from_sql`, "0"},
	{"a cursor", `declare kept cursor with hold for select 1`, `select count(*)::text from pg_cursors where name = 'kept'`, "0"},
}

// TestLeftovers has callers leave things behind, alone and in a transaction, and looks for them on the same session.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	ways := map[string]func(leave string) error{
		"by itself": func(leave string) error { _, err := s.Exec(ctx, leave); return err },
		"as a query": func(leave string) error {
			rows, err := s.Query(ctx, leave)
			if err == nil {
				rows.Close()
				err = rows.Err()
			}
			return err
		},
		"in a transaction": func(leave string) error {
			return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, leave); return err })
		},
		"on the connection of a transaction": func(leave string) error {
			return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { _, err := tx.Conn().Exec(ctx, leave); return err })
		},
		"in a batch": func(leave string) error {
			var batch pgx.Batch
			batch.Queue(leave)
			return s.SendBatch(ctx, &batch).Close()
		},
	}
	pid := ask(ctx, t, s, `select pg_backend_pid()::text`)
	for _, c := range leftovers {
		for name, way := range ways {
			if err := way(c.leave); err != nil {
				t.Errorf("%s, %s: %v", c.name, name, err)
			}
			if got := ask(ctx, t, s, c.ask); got != c.want {
				t.Errorf("%s, %s: the next caller has %s", c.name, name, got)
			}
		}
	}
	if got := ask(ctx, t, s, `select pg_backend_pid()::text`); got != pid {
		t.Error("the session is another one, so that the test proves nothing")
	}
}

func ask(ctx context.Context, t *testing.T, s router.Shard, sql string) (answer string) {
	t.Helper()
	if err := s.QueryRow(ctx, sql).Scan(&answer); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
	return answer
}

// What leaves its transaction open has written nothing, and says so.
func TestTransactionLeftOpen(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	for name, leave := range map[string]func() error{
		"a string": func() error { return second(s.Exec(ctx, `begin; update photos set title = 'lost'`)) },
		"a batch": func() error {
			var batch pgx.Batch
			batch.Queue(`begin`)
			batch.Queue(`update photos set title = 'lost'`)
			return s.SendBatch(ctx, &batch).Close()
		},
		"a query": func() error {
			rows, err := s.Query(ctx, `begin`)
			if err != nil {
				return err
			}
			rows.Close()
			return rows.Err()
		},
	} {
		if err := leave(); err == nil || !strings.Contains(err.Error(), "use Begin") {
			t.Errorf("%s: got %v", name, err)
		}
		if got := ask(ctx, t, s, `select title from photos where id = 1`); got != "of shard 1" {
			t.Errorf("%s: the next caller sees %q", name, got)
		}
		b.isFree(ctx, t)
	}
}

// What a BeginQuery and a CommitQuery leave on a session is taken off it.
func TestLeftoversOfBeginQueryAndCommitQuery(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	for _, c := range leftovers {
		for _, opts := range []pgx.TxOptions{{BeginQuery: c.leave}, {CommitQuery: c.leave + "; commit"}} {
			_ = s.Tx(ctx, opts, func(pgx.Tx) error { return nil }) // it is no BEGIN, and behind some of it there is no COMMIT
			if got := ask(ctx, t, s, c.ask); got != c.want {
				t.Errorf("%s, %+v: the next caller has %s", c.name, opts, got)
			}
		}
	}
}

func TestListenIsRefused(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	var batch pgx.Batch
	batch.Queue(`listen news`)
	_, inExec := s.Exec(ctx, `listen news`)
	_, inQuery := s.Query(ctx, `listen news`)
	inTx := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, `listen news`); return err })
	atBegin := s.Tx(ctx, pgx.TxOptions{BeginQuery: `listen news`}, func(pgx.Tx) error { return nil })
	atCommit := s.Tx(ctx, pgx.TxOptions{CommitQuery: `listen news; commit`}, func(pgx.Tx) error { return nil })
	for _, err := range []error{inExec, inQuery, inTx, atBegin, atCommit, s.SendBatch(ctx, &batch).Close()} {
		if err == nil || !strings.Contains(err.Error(), "connection of its own") {
			t.Errorf("got %v", err)
		}
	}
}

// TestHookThatSets has what a hook sets for new connections last, whatever callers leave.
func TestHookThatSets(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1, pool: func(cfg *pgxpool.Config) {
		cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `set work_mem = '5MB'`)
			return err
		}
	}})
	s := b.shard(t, 1)
	for range 2 {
		if got := ask(ctx, t, s, `select current_setting('work_mem')`); got != "5MB" {
			t.Errorf("got %s", got)
		}
		if _, err := s.Exec(ctx, `set work_mem = '7MB'`); err != nil {
			t.Error(err)
		}
	}
}
