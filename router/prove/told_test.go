package prove_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/operation"
)

// told counts what tracers are told.
type told struct{ started, ended, good, again, unsent atomic.Int64 }

func tracers(t *told) []pgx.QueryTracer { return []pgx.QueryTracer{t} }

func (o *told) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	o.started.Add(1)
	return ctx
}

func (o *told) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, end pgx.TraceQueryEndData) {
	o.ended.Add(1)
	if end.Err == nil {
		o.good.Add(1)
	}
	if op, ok := operation.Of(ctx); ok && op.Resent > 0 {
		o.again.Add(1)
	}
}

func (o *told) TraceUnsent(context.Context, error) { o.unsent.Add(1) }

// TestTracersOfCallsMadeAgain loses a server with calls under way, that wait for a connection, and that come afterwards. A
// call that is answered in the end is no unsent one to tracers, however often it was tried; one that was sent twice is known
// as such; each start has one end.
func TestTracersOfCallsMadeAgain(t *testing.T) {
	t.Parallel()
	server := start(t)
	seen := &told{}
	cfg := router.Config{Failover: router.Failover{Wait: testLimit}, Tracers: tracers(seen)}
	r := open(t, cfg, withNobody(t, server)+"&pool_max_conns=6")
	s := shard(t, r, 1)
	const held = `select note from ledger where id = $1 limit 1` // goes by itself, as the router hardly knows it
	var holders []pgx.Tx
	for range 5 {
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		holders = append(holders, tx)
	}
	errs := make(chan error, 12)
	get := func(query string) {
		var note string
		errs <- s.QueryRow(t.Context(), query, 0).Scan(&note)
	}
	get(held) // so that it is prepared, and lost when it runs
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	begun := seen.started.Load()
	defer hold(t, server.DSN(database))()
	go get(held)
	eventually(t, "a statement waits for the lock", func() bool {
		return ask[bool](t, server.DSN(database), `select exists (select from pg_stat_activity where query like '%limit 1%' and wait_event_type = 'Lock')`)
	})
	for range cap(errs) - 1 {
		go get(selection)
	}
	eventually(t, "calls wait", func() bool { return stats(r, 0).Waiting > 0 })
	if err := server.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	isDown(t, r, 0)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if started, ended := seen.started.Load(), seen.ended.Load(); started != ended {
		t.Errorf("%d starts, %d ends", started, ended)
	}
	if good := seen.good.Load() - begun; good != int64(cap(errs)) {
		t.Errorf("%d calls were answered, tracers know of %d", cap(errs), good)
	}
	if again, unsent := seen.again.Load(), seen.unsent.Load(); again == 0 || unsent != 0 {
		t.Errorf("%d were sent again, %d not sent", again, unsent)
	} else if resent := stats(r, 0).Resent; resent < uint64(again) {
		t.Errorf("%d were sent again, %d are counted", again, resent)
	}
	for _, tx := range holders {
		_ = tx.Rollback(t.Context())
	}
}
