package router_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/operation"
)

// told notes what a tracer is told of operations. It is safe for concurrent use.
type told struct {
	mu    sync.Mutex
	ended []operation.Info
	lost  []string // classes of those that were not sent
}

func (o *told) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (o *told) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if op, ok := operation.Of(ctx); ok {
		o.ended = append(o.ended, op)
	}
}

func (o *told) TraceUnsent(_ context.Context, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = append(o.lost, operation.Classify(err))
}

// Tracers hear of a statement once, whatever the router does to have it answered.
func TestOperationIsToldOnce(t *testing.T) {
	t.Parallel()
	seen := &told{}
	b, ctx := setup(t, options{conns: 1, tracers: []pgx.QueryTracer{seen}})
	s := b.shard(t, 9)
	const query = `select * from photos where id = $1`
	read := func() {
		t.Helper()
		rows, err := s.Query(ctx, query, 1)
		if err != nil {
			t.Fatal(err)
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		read()
	}
	if _, err := b.plain.Exec(ctx, `alter table shard_00009.photos add column more int`); err != nil {
		t.Fatal(err)
	}
	seen.ended = nil
	read() // is prepared anew
	if len(seen.ended) != 1 {
		t.Errorf("told of %d statements, want 1", len(seen.ended))
	}
	familiar(ctx, t, s, query, 1) // else callers would be served one by one
	seen.ended = nil
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			rows, err := s.Query(ctx, query, 1)
			if err != nil {
				t.Error(err)
				return
			}
			rows.Close()
		})
	}
	b.waits(ctx, t, 4)
	if _, err := b.plain.Exec(ctx, `alter table shard_00009.photos drop column more`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	callers.Wait()
	var got []string
	for _, op := range seen.ended {
		got = append(got, op.Summary)
		if op.Summary == "SELECT photos" && op.Together > 1 && (op.Waited <= 0 || op.Resent != 1) {
			t.Errorf("sent together: %+v", op)
		}
		if op.Host != "pg-a" || op.Schema != "shard_00009" || op.Shard != 9 {
			t.Errorf("elsewhere: %+v", op)
		}
	}
	slices.Sort(got)
	const one = "SELECT photos"
	if want := []string{"BEGIN", "ROLLBACK", one, one, one, one}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if resent := b.Stats()[0].Resent; resent != 4 {
		t.Errorf("%d calls sent again, expected 4", resent)
	}
}

// A caller that leaves while it waits for a connection is told of as unsent, one whose statement runs as cancelled.
func TestOperationOfACallerThatLeaves(t *testing.T) {
	t.Parallel()
	seen := &told{}
	b, ctx := setup(t, options{conns: 1, tracers: []pgx.QueryTracer{seen}})
	s := b.shard(t, 9)
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	impatient, leave := context.WithCancel(ctx)
	var caller sync.WaitGroup
	caller.Go(func() {
		if _, err := s.Exec(impatient, `select 1`); err == nil {
			t.Error("no error")
		}
	})
	b.waits(ctx, t, 1)
	leave()
	caller.Wait()
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen.lost, []string{operation.ClassCanceled}) {
		t.Errorf("got %q", seen.lost)
	}
}

// logged returns the lines of a log with some message.
func logged(t *testing.T, log, message string) (lines []map[string]any) {
	t.Helper()
	for _, text := range strings.Split(strings.TrimSpace(log), "\n") {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if line["msg"] == message {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestLogger(t *testing.T) {
	t.Parallel()
	var log safeBuffer
	b, ctx := setup(t, options{logger: slog.New(slog.NewJSONHandler(&log, nil)), slow: 50 * time.Millisecond})
	s := b.shard(t, 9)
	if _, err := s.Exec(ctx, `select pg_sleep(0.06), $1::text`, "hunter2"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Exec(ctx, `select pg_sleep(0.06), 'hunter2'`); err != nil {
		t.Fatal(err)
	}
	_ = router.Retry{Attempts: 2, Backoff: time.Microsecond}.Tx(ctx, s, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `do $$ begin raise serialization_failure using message = 'hunter2'; end $$`)
		return err
	})
	c := b.Map().Config()
	c.Version = 7
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetMap(m); err != nil {
		t.Fatal(err)
	}
	b.Close()
	text := log.String()
	for message, want := range map[string]int{
		"host opened": 1, "host closed": 1, "map changed": 1, "transaction failed for good": 1,
	} {
		if got := len(logged(t, text, message)); got != want {
			t.Errorf("%s: %d lines, want %d", message, got, want)
		}
	}
	slow := logged(t, text, "slow statement")
	if len(slow) < 2 || slow[0]["sql"] != `select pg_sleep(0.06), $1::text` || slow[1]["sql"] != nil ||
		slow[0]["shard"] != 9.0 || slow[0]["schema"] != "shard_00009" || slow[0]["host"] != "pg-a" || slow[0]["summary"] != "SELECT" {
		t.Errorf("slow statements: %v", slow)
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("an argument is in the log: %s", text)
	}
	if stats := b.Stats()[0]; stats.Retried != 1 || stats.Exhausted != 1 {
		t.Errorf("got %+v", stats)
	}
}

// safeBuffer is safe for concurrent use.
type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}
