package router_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
)

// startPgBouncer starts one in front of the tests' server.
func startPgBouncer(t *testing.T, settings map[string]string) *localpg.PgBouncer {
	t.Helper()
	return pgtest.StartPgBouncer(t, localpg.PgBouncerConfig{DSN: routertest.Server.DSN("postgres"), Settings: settings})
}

// behindPgBouncer returns a function that does what setup does, with the router behind a PgBouncer, and the rest past it.
func behindPgBouncer(t *testing.T) func(testing.TB, options) (*testBundle, context.Context) {
	t.Helper()
	bouncer := startPgBouncer(t, fewSessions)
	return func(t testing.TB, opts options) (*testBundle, context.Context) {
		t.Helper()
		opts.on, _ = setup(t, options{})
		opts.address = bouncer.Address()
		return setup(t, opts)
	}
}

type (
	shardCall  = func(context.Context, router.Shard) error
	checkOfOne = func(ctx context.Context, t *testing.T, b *testBundle, call shardCall)
)

// checkEach checks calls, each with one connection to a database of its own.
func checkEach(t *testing.T, calls map[string]shardCall, check checkOfOne) {
	t.Helper()
	for what, call := range calls {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{conns: 1})
			check(ctx, t, b, call)
		})
	}
}

// checkEachBehindPgBouncer does so behind one PgBouncer, one after the other.
func checkEachBehindPgBouncer(t *testing.T, calls map[string]shardCall, check checkOfOne) {
	t.Helper()
	setup := behindPgBouncer(t)
	for what, call := range calls {
		t.Run(what, func(t *testing.T) {
			b, ctx := setup(t, options{conns: 1})
			check(ctx, t, b, call)
		})
	}
}

// Two routers take turns on the same two sessions of the server, which a third client leaves set to another shard all
// the while.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{})
	bouncer := startPgBouncer(t, fewSessions)
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) { alternate(t, options{on: db, address: bouncer.Address(), dsn: execMode(mode)}) })
	}
}

// pooledSessions is how many sessions of the server PgBouncer has.
const pooledSessions = 2

// fewSessions are the settings for that.
var fewSessions = map[string]string{"default_pool_size": fmt.Sprint(pooledSessions)}

func alternate(t *testing.T, opts options) {
	t.Helper()
	const workers, rounds = 16, 12
	db := opts.on
	one, ctx := setup(t, opts)
	two, _ := setup(t, opts)
	exec := opts
	exec.dsn = execMode("exec") // which a plain client needs behind PgBouncer
	poisoner, err := pgx.Connect(ctx, exec.apply(t, db.dsns[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer poisoner.Close(ctx)

	var lock sync.Mutex
	servers := map[int]bool{} // the sessions that answered
	locks := make([]sync.Mutex, shardCount)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := range rounds {
				client := []*testBundle{one, two}[(w+i)%2]
				s, q := client.shard(t, (w*7+i*5)%shardCount), questions[(w+i/2)%len(questions)]
				locks[s.Number()].Lock()
				owner, err := q.ask(ctx, s)
				locks[s.Number()].Unlock()
				if err != nil || owner != int64(s.Number()) {
					t.Errorf("%s: %s was answered with owner %d: %v", q.name, s, owner, err)
					return
				}
				var pid int
				if err := s.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
					t.Error(err)
					return
				}
				lock.Lock()
				servers[pid] = true
				lock.Unlock()
			}
		})
	}
	wait.Go(func() {
		for range rounds {
			if _, err := poisoner.Exec(ctx, poison); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wait.Wait()
	if len(servers) == 0 || len(servers) > pooledSessions {
		t.Errorf("%d sessions of the server answered, expected no more than %d", len(servers), pooledSessions)
	}
}

// A PgBouncer whose sessions are all busy answers neither callers nor probes, if it has to ask the server for their passwords. It is not
// down: what runs goes on, and what waits gets its turn.
func TestBusyPgBouncer(t *testing.T) {
	t.Parallel()
	const failAfter = time.Second
	db, ctx := setup(t, options{})
	admin, err := pgx.ParseConfig(db.dsns[0])
	if err != nil {
		t.Fatal(err)
	}
	role := "busy_of_" + admin.Database
	exec := func(ctx context.Context, statements string) {
		if _, err := db.plain.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	exec(ctx, fmt.Sprintf(`create role %[1]s login password 'secret';
		do $$ declare s name; begin for s in select nspname from pg_namespace where nspname ~ '^shard_' loop
			execute format('grant usage on schema %%1$I to %[1]s; grant select, update on %%1$I.photos to %[1]s', s);
		end loop; end $$`, role))
	t.Cleanup(func() { exec(context.WithoutCancel(ctx), fmt.Sprintf("drop owned by %[1]s; drop role %[1]s", role)) })
	bouncer := startPgBouncer(t, map[string]string{
		"max_db_connections": fmt.Sprint(pooledSessions), "auth_user": admin.User, "auth_query": "select usename, passwd from pg_shadow where usename = $1",
	})
	b, _ := setup(t, options{
		on: db, address: bouncer.Address(), conns: 4 * pooledSessions, failAfter: failAfter,
		as: func(dsn string) string { return localpg.AsRole(dsn, role, "secret") },
	})
	if err := b.Ping(ctx); err != nil { // from now on it knows of the pooler
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 4 * pooledSessions {
		wait.Go(func() {
			s := b.shard(t, i)
			tag, err := s.Exec(ctx, `update photos set owner = owner from (select pg_sleep($1)) s`, (3 * failAfter).Seconds())
			if err != nil || tag.RowsAffected() != 1 {
				t.Errorf("%s: %s, %v", s, tag, err)
			}
		})
	}
	wait.Wait()
}
