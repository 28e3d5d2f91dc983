package prove_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// failSoon is how long a host may be silent in tests that wait for it, or show that it is not. A server that has something
// else to do answers in that time.
const failSoon = 3 * time.Second

func sqlState(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// underWay waits until a statement with a text runs on a server, and returns its process.
func underWay(t *testing.T, dsn, text string) (pid int) {
	t.Helper()
	eventually(t, text+" is under way", func() bool {
		pid = ask[int](t, dsn, `select coalesce(max(pid), 0) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() and query like '%`+text+`%'`)
		return pid != 0
	})
	return pid
}

// hold keeps others from the ledger of shard 1.
func hold(t *testing.T, dsn string) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `begin; lock shard_00001.ledger in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { _ = conn.Close(context.Background()) })
}

const conns = 2

// prepareOnAll has all connections of a router know the statements of read and write, so that these are lost when they
// run, and not before.
func prepareOnAll(t *testing.T, s router.Shard) {
	t.Helper()
	for i := range conns {
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		_, err = tx.Exec(t.Context(), insert, -1-i, "")
		var note string
		if err := errors.Join(err, tx.QueryRow(t.Context(), selection, 0).Scan(&note)); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `delete from ledger where id < 0`); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSessionLostBeforeAWrite loses the connection while a write is prepared. It was not sent, and so is made again.
func TestSessionLostBeforeAWrite(t *testing.T) {
	t.Parallel()
	direct := start(t).DSN(database)
	s := shard(t, open(t, router.Config{}, direct), 1)
	release := hold(t, direct)
	defer release()
	for name, call := range map[string]func() error{
		"one": func() error { return write(t.Context(), s, 1) },
		"batch": func() error {
			b := &pgx.Batch{}
			b.Queue(insert+` returning id`, 2, "")
			return s.SendBatch(t.Context(), b).Close()
		},
	} {
		ended := make(chan error, 1)
		go func() { ended <- call() }()
		pid := underWay(t, direct, "insert into ledger")
		ask[bool](t, direct, fmt.Sprintf(`select pg_terminate_backend(%d)`, pid))
		eventually(t, "it is sent again", func() bool { return underWay(t, direct, "insert into ledger") != pid })
		release()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		release = hold(t, direct)
	}
	release()
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	defer hold(t, direct)()
	ended := make(chan error, 1)
	go func() {
		_, err := tx.Exec(t.Context(), `insert into ledger values ($1) returning note`, 3)
		ended <- err
	}()
	ask[bool](t, direct, fmt.Sprintf(`select pg_terminate_backend(%d)`, underWay(t, direct, "insert into ledger")))
	if err := <-ended; !router.SafeToRetry(err) || sqlState(err) != "57P01" {
		t.Errorf("in a transaction: %v", err)
	}
}

// TestSessionsEnded ends sessions in mid-statement: by an administrator (57P01), and by a crash of another one (57P02),
// which has the server refuse clients (57P03) until it has recovered. What only reads is made again unseen. Of a write it
// is said that it may have run, although it has not.
func TestSessionsEnded(t *testing.T) {
	t.Parallel()
	server := start(t)
	direct := server.DSN(database)
	r := open(t, router.Config{Pool: func(_ shards.Host, cfg *pgxpool.Config) error { cfg.MaxConns = conns; return nil }}, direct)
	s := shard(t, r, 1)
	for code, end := range map[string]func(release func()){
		"57P01": func(release func()) {
			ask[bool](t, direct, `select bool_and(pg_terminate_backend(pid)) from pg_stat_activity where state = 'active' and query like '%ledger%' and query not like '%pg_stat%' and wait_event_type = 'Lock'`)
			release()
		},
		"57P02": func(release func()) {
			other, err := pgx.Connect(t.Context(), direct)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close(context.Background())
			if err := syscall.Kill(int(other.PgConn().PID()), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
	} {
		prepareOnAll(t, s)
		release := hold(t, direct)
		defer release()
		reading, writing := make(chan error, 1), make(chan error, 1)
		go func() {
			reading <- again(t.Context(), func(ctx context.Context) error { return read(ctx, s) })
		}()
		underWay(t, direct, "select note")
		go func() { writing <- write(t.Context(), s, 1) }()
		underWay(t, direct, "insert into ledger")
		const waiting = `select count(*) from pg_stat_activity where query like '%ledger%' and query not like '%pg_stat%' and wait_event_type = 'Lock'`
		eventually(t, "both wait for the lock", func() bool { return ask[int](t, direct, waiting) == 2 })
		end(release)
		if err := <-reading; err != nil {
			t.Errorf("%s: a read: %v", code, err)
		}
		err := <-writing
		if !errors.Is(err, router.ErrLost) || router.SafeToRetry(err) {
			t.Errorf("%s: a write: %v", code, err)
		}
		if got := sqlState(err); code == "57P01" && got != code {
			t.Errorf("a write: code %s, want %s", got, code)
		}
		if err := again(t.Context(), func(ctx context.Context) error { return write(ctx, s, int64(len(code)*100)+int64(code[4])) }); err != nil {
			t.Errorf("%s: afterwards: %v", code, err)
		}
	}
}

// countConnects counts the connections that are tried to be made, those of probes too.
func countConnects(made *atomic.Int64) func(shards.Host, *pgxpool.Config) error {
	return func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
			made.Add(1)
			return nil
		}
		return nil
	}
}

// TestServerStops has a server refuse new clients while it waits for the old ones to leave (57P03). A transaction that
// was under way goes on. However many calls come at once and fail, few connections are tried.
func TestServerStops(t *testing.T) {
	t.Parallel()
	server := start(t)
	var made atomic.Int64
	r := open(t, router.Config{Pool: countConnects(&made)}, server.DSN(database))
	s := shard(t, r, 1)
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	stays, err := pgx.Connect(t.Context(), server.DSN(database)) // for whom the server waits
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server refuses clients", func() bool {
		conn, err := pgx.Connect(t.Context(), server.DSN(database))
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return sqlState(err) == "57P03"
	})
	for name, call := range map[string]func(context.Context) error{
		"write": func(ctx context.Context) error { return write(ctx, s, 1) },
		"read":  func(ctx context.Context) error { return read(ctx, s) },
		"begin": func(ctx context.Context) error { _, err := s.Begin(ctx); return err },
	} {
		if err := call(t.Context()); sqlState(err) != "57P03" || !router.SafeToRetry(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	isDown(t, r, 0)
	_, err = tx.Exec(t.Context(), insert, 1, "")
	if err := errors.Join(err, tx.Commit(t.Context())); err != nil {
		t.Errorf("a transaction that was under way: %v", err)
	}
	before, calls := made.Load(), int64(500)
	var running errgroup.Group
	for range calls {
		running.Go(func() error {
			if err := write(t.Context(), s, 1); !errors.Is(err, router.ErrHostDown) {
				return fmt.Errorf("a call to a host that is down: %w", err)
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := made.Load() - before; n > calls/2 {
		t.Errorf("%d calls came at once and failed, and %d connections were tried meanwhile", calls, n)
	}
	_ = stays.Close(t.Context())
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := again(t.Context(), func(ctx context.Context) error { return write(ctx, s, 2) }); err != nil {
		t.Error(err)
	}
	if got := ask[int](t, server.DSN(database), `select count(*) from shard_00001.ledger`); got != 3 {
		t.Errorf("%d rows", got)
	}
}

// TestDefaultReadOnly demotes a primary as some do by hand: it takes no writes any more (25006), then another one is
// promoted. A write waits for that.
func TestDefaultReadOnly(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	do(t, p.primary.DSN(database), `alter system set synchronous_standby_names = ''`)
	r := open(t, router.Config{Failover: router.Failover{Wait: testLimit}}, dsn(t, p.primary, p.standby))
	s := shard(t, r, 1)
	if err := write(t.Context(), s, 1); err != nil {
		t.Fatal(err)
	}
	do(t, p.primary.DSN(database), `alter system set default_transaction_read_only = on`)
	do(t, p.primary.DSN(database), `select pg_reload_conf()`)
	eventually(t, "the primary takes no writes", func() bool {
		_, err := s.Exec(t.Context(), `begin read only; select 1; commit`)
		return err == nil && ask[string](t, p.primary.DSN(database), `show default_transaction_read_only`) == "on"
	})
	look := make(chan struct{}) // closed when the addresses may be asked
	looks := func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.BeforeConnect = func(ctx context.Context, _ *pgx.ConnConfig) error {
			select {
			case <-look:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	impatient := open(t, router.Config{Failover: router.Failover{NoWait: true}, Pool: looks}, dsn(t, p.primary, p.standby))
	if err := read(t.Context(), shard(t, impatient, 1)); !errors.Is(err, router.ErrHostDown) {
		t.Errorf("a call that does not wait until the primary is found: %v", err)
	}
	close(look)
	eventually(t, "the primary is found", func() bool { return read(t.Context(), shard(t, impatient, 1)) == nil })
	if err := write(t.Context(), shard(t, impatient, 1), 2); sqlState(err) != "25006" || !router.SafeToRetry(err) {
		t.Errorf("a write that does not wait: %v", err)
	}
	writing := make(chan error, 1)
	go func() { writing <- write(t.Context(), s, 3) }()
	promote(t, p.standby)
	if err := <-writing; err != nil {
		t.Error(err)
	}
	if got := stats(r, 0); got.Primary != address(t, p.standby) || got.RoleChanges != 1 {
		t.Errorf("got %+v", got)
	}
	// What its caller wants to be read only is no sign of anything.
	err := s.Tx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into ledger values (4)`)
		return err
	})
	if sqlState(err) != "25006" || router.SafeToRetry(err) {
		t.Errorf("a write in a transaction that is read only: %v", err)
	}
}

// TestErrorOfClass08 has a statement fail with a connection error that is not about its own connection.
func TestErrorOfClass08(t *testing.T) {
	t.Parallel()
	r := open(t, router.Config{}, start(t).DSN(database))
	_, err := shard(t, r, 1).Exec(t.Context(), `do $$ begin raise exception 'elsewhere' using errcode = '08006'; end $$`)
	if sqlState(err) != "08006" || errors.Is(err, router.ErrLost) || router.SafeToRetry(err) {
		t.Errorf("got %v", err)
	}
	if got := stats(r, 0); got.Breaker != router.BreakerClosed {
		t.Errorf("got %+v", got)
	}
}

// TestReadOnlyForLong has a primary take no writes for longer than calls wait for another one. Then they do not wait any more,
// each by itself.
func TestReadOnlyForLong(t *testing.T) {
	t.Parallel()
	server := start(t)
	r := open(t, router.Config{Failover: router.Failover{Wait: time.Second}}, withNobody(t, server))
	s := shard(t, r, 1)
	if err := write(t.Context(), s, 1); err != nil {
		t.Fatal(err)
	}
	do(t, server.DSN(database), `alter system set default_transaction_read_only = on`)
	do(t, server.DSN(database), `select pg_reload_conf()`)
	n := int64(1)
	eventually(t, "the primary takes no writes", func() bool { n++; return sqlState(write(t.Context(), s, n)) == "25006" })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 120 {
		if err := write(ctx, s, 1000); sqlState(err) != "25006" || !router.SafeToRetry(err) {
			t.Fatal(err)
		}
	}
}

// TestReadThatEndsItsServer has a read end its session each time that it runs, as one may that finds a bug or needs all the
// memory. It is not sent again as long as calls wait for a host.
func TestReadThatEndsItsServer(t *testing.T) {
	t.Parallel()
	server := start(t)
	direct := server.DSN(database)
	r := open(t, router.Config{Failover: router.Failover{Wait: 10 * testLimit}}, withNobody(t, server))
	reading := make(chan error, 1)
	go func() {
		const query = `select note from ledger, generate_series(1, 400000000) where id = $1 limit 1 offset 399999999`
		var note string
		reading <- shard(t, r, 1).QueryRow(t.Context(), query, 0).Scan(&note)
	}()
	// The sessions are returned, for one may be met again before it has ended.
	const end = `select coalesce(array_agg(pid || ' ' || backend_start), '{}')
from pg_stat_activity, lateral pg_terminate_backend(pid)
where state = 'active' and pid <> pg_backend_pid() and query like '%generate_series%'`
	sessions := map[string]bool{}
	for len(sessions) < 10 { // it is sent again three times, not counting what met its end while it was prepared
		select {
		case err := <-reading:
			if !errors.Is(err, router.ErrLost) || router.SafeToRetry(err) {
				t.Error(err)
			}
			return
		default:
			for _, session := range ask[[]string](t, direct, end) {
				sessions[session] = true
			}
		}
	}
	t.Errorf("it was sent %d times", len(sessions))
}
