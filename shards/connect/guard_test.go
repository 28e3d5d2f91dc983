package connect_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/internal/scram"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// TestIterations of a server's own: as many as an operator may want are computed, and no more.
func TestIterations(t *testing.T) {
	t.Parallel()
	dsn := role(t, plain, "iterates")
	for iterations, want := range map[int]string{1: "", 4096: "", 100_000: "", 250_000: "asks for 250000 iterations of SCRAM: expected at most 200000"} {
		sql(t, plain, fmt.Sprintf("alter role iterates password '%s'", scram.Verifier(sentinel, iterations)))
		conn, err := connect.Open(t.Context(), hostOf(dsn(sentinel, "", "sslmode=disable")), nil)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d iterations: got %v, expected %q", iterations, err, want)
		}
	}
}

// Logins of a pool to a server that asks for many iterations take turns, and a quarter of the time of one processor.
func TestOneExpensiveLoginAtATime(t *testing.T) {
	t.Parallel()
	const iterations, logins = 50_000, 6
	address := pgtest.Hostile(t, func(_ net.Conn, b *pgproto3.Backend) { _ = pgtest.AskSCRAM(b, iterations) })
	_, pool := poolOf(t, hostOf("postgres://app:"+sentinel+"@"+address+"/app?sslmode=disable&pool_max_conns=6"), nil)
	took := time.Hour // by one, at best
	for range 3 {
		began := time.Now()
		_ = scram.Verifier(sentinel, iterations)
		took = min(took, time.Since(began))
	}
	began := time.Now()
	var all sync.WaitGroup
	for range logins {
		all.Go(func() {
			if _, err := pool.Acquire(t.Context()); err == nil || !strings.Contains(err.Error(), "53300") {
				t.Errorf("got %v, expected that the server refuses after the login", err)
			}
		})
	}
	all.Wait()
	if all := time.Since(began); all < (logins-1)*2*took { // each but the last holds its turn for four times as long
		t.Errorf("%d logins took %s, and one takes %s", logins, all, took)
	}
}

// TestSuspect: a server that a login has refused is tried again once a second, by one login, and is trusted again after a login.
func TestSuspect(t *testing.T) {
	t.Parallel()
	var logins atomic.Int64
	var mended atomic.Bool
	address := pgtest.Hostile(t, func(_ net.Conn, b *pgproto3.Backend) {
		logins.Add(1)
		if !mended.Load() {
			_ = pgtest.AskSCRAM(b, 10_000_000)
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		_ = b.Flush()
		for {
			if _, err := b.Receive(); err != nil {
				return
			}
		}
	})
	_, pool := poolOf(t, hostOf("postgres://app:"+sentinel+"@"+address+"/app?sslmode=disable&pool_max_conns=10"), nil)
	began := time.Now()
	try := func() error {
		conn, err := pool.Acquire(t.Context())
		if err == nil {
			_ = conn.Conn().Close(t.Context())
			conn.Release()
		}
		return err
	}
	for range 200 {
		if err := try(); err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "asks for 10000000 iterations") {
			t.Fatalf("got %v", err)
		}
	}
	if n, most := logins.Load(), 1+int64(time.Since(began)/time.Second); n > most {
		t.Errorf("%d logins in %s, expected %d at most", n, time.Since(began), most)
	}
	mended.Store(true)
	for try() != nil {
		if time.Since(began) > time.Minute {
			t.Fatal("it is suspect for good")
		}
	}
	if err := try(); err != nil { // at once
		t.Errorf("after a login: got %v", err)
	}
}
