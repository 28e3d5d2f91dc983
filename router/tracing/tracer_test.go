package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/router/tracing"
	"github.com/kiloshard/kiloshard/shards"
)

// Each statement of the service has one span, and nothing else has one.
func TestSpans(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	s := b.shard(t, 3)
	var title string
	for _, test := range []struct {
		name string
		do   func() error
		want []string
		fail bool
	}{
		{"write", func() error {
			_, err := s.Exec(ctx, `insert into photos values ($1, $2)`, 1, "sunset")
			return err
		}, []string{"INSERT photos on 3"}, false},
		{"read", func() error {
			return s.QueryRow(ctx, `select title from photos where id = $1`, 1).Scan(&title)
		}, []string{"SELECT photos on 3"}, false},
		{"no rows are no error of the statement", func() error {
			return s.QueryRow(ctx, `select title from photos where id = $1`, 2).Scan(&title)
		}, []string{"SELECT photos on 3"}, true},
		{"error", func() error {
			_, err := s.Exec(ctx, `insert into photos values ($1, $2)`, 1, "again")
			return err
		}, []string{"INSERT photos on 3: 23505"}, true},
		{"error of a prepare", func() error {
			return s.QueryRow(ctx, `select nothing from photos where id = $1`, 1).Scan(&title)
		}, []string{"SELECT photos on 3: 42703"}, true},
		{"string of statements", func() error {
			_, err := s.Exec(ctx, `delete from photos where id = 7; update photos set title = 'x' where id = 7`)
			return err
		}, []string{"DELETE photos UPDATE on 3"}, false},
		{"argument that does not fit", func() error {
			return s.QueryRow(ctx, `select title from photos where id = $1`, struct{}{}).Scan(&title)
		}, []string{"SELECT photos on 3: _OTHER"}, true},
		{"refused", func() error {
			_, err := s.Exec(ctx, `listen photos`)
			return err
		}, []string{"LISTEN on 3: _OTHER"}, true},
		{"batch", func() error {
			var batch pgx.Batch
			for id := range 3 {
				batch.Queue(`insert into photos values ($1, $2)`, 10+id, "of a batch")
			}
			return s.SendBatch(ctx, &batch).Close()
		}, []string{"BATCH INSERT photos on 3"}, false},
		{"batch with an error", func() error {
			var batch pgx.Batch
			batch.Queue(`select count(*) from photos`)
			batch.Queue(`insert into photos values ($1, $2)`, 10, "again")
			return s.SendBatch(ctx, &batch).Close()
		}, []string{"BATCH on 3: 23505"}, true},
		{"transaction", func() error {
			return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `update photos set title = $1 where id = $2`, "x", 1)
				return errors.Join(err, tx.QueryRow(ctx, `select title from photos where id = $1`, 1).Scan(&title))
			})
		}, []string{"BEGIN on 3", "UPDATE photos on 3", "SELECT photos on 3", "COMMIT on 3"}, false},
		{"savepoint", func() error {
			return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
				_ = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `insert into photos values ($1, $2)`, 1, "again")
					return err
				})
				return errors.New("no more")
			})
		}, []string{"BEGIN on 3", "SAVEPOINT on 3", "INSERT photos on 3: 23505", "ROLLBACK TO on 3", "ROLLBACK on 3"}, true},
		{"copy", func() error {
			rows := [][]any{{int64(20), "a"}, {int64(21), "b"}}
			_, err := s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "title"}, pgx.CopyFromRows(rows))
			return err
		}, []string{"BEGIN on 3", "COPY photos on 3", "COMMIT on 3"}, false},
		{"context that has ended", func() error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return s.QueryRow(ctx, `select title from photos where id = $1`, 1).Scan(&title)
		}, []string{"SELECT photos on 3: canceled"}, true},
		{"all shards", func() error {
			_, err := many.Collect(ctx, b.Router, b.All(), many.Query[int]{SQL: `select count(*) from photos`, Scan: pgx.RowTo[int]})
			return err
		}, []string{"SELECT photos on 0", "SELECT photos on 1", "SELECT photos on 2", "SELECT photos on 3"}, false},
	} {
		err := test.do()
		if (err != nil) != test.fail {
			t.Errorf("%s: %v", test.name, err)
		}
		got := brief(b.take())
		if test.name == "all shards" {
			slices.Sort(got)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	ctx, request := b.caller(ctx)
	var batch pgx.Batch
	batch.Queue(`select title from photos where id = $1`, 7)
	batch.Queue(`select count(*) from photos`)
	if err := b.shard(t, 2).SendBatch(ctx, &batch).Close(); err != nil {
		t.Fatal(err)
	}
	spans := b.take()
	if len(spans) != 1 {
		t.Fatalf("got %q", brief(spans))
	}
	span := spans[0]
	if span.SpanKind != trace.SpanKindClient || span.Parent.SpanID() != request.SpanContext().SpanID() || span.Status.Code != codes.Unset {
		t.Errorf("kind %v, parent %v, status %v", span.SpanKind, span.Parent.SpanID(), span.Status)
	}
	got := map[string]string{}
	for _, attr := range span.Attributes {
		got[string(attr.Key)] = attr.Value.String()
	}
	place := b.shard(t, 2).Host()
	address, database, _ := strings.Cut(place.Address(), "/")
	host, port, _ := strings.Cut(address, ":")
	delete(got, "kiloshard.waited") // for the first connection
	want := map[string]string{
		"db.system.name": "postgresql", "db.namespace": database + "|shard_00002", "server.address": host, "server.port": port,
		"db.query.summary": "BATCH SELECT photos", "db.operation.batch.size": "2",
		"kiloshard.shard": "2", "kiloshard.host": place.Name, "kiloshard.schema": "shard_00002", "kiloshard.kind": "batch",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Of a host with several addresses the connection says which one it was.
func TestSeveralAddresses(t *testing.T) {
	t.Parallel()
	var port string
	b, ctx := setup(t, options{hosts: func(hosts []shards.Host) {
		for i, h := range hosts {
			address, _, _ := strings.Cut(h.Address(), "/")
			_, port, _ = strings.Cut(address, ":")
			hosts[i].DSN = strings.Replace(h.DSN, address, "127.0.0.1:1,"+address, 1) // of which nobody is at the first
		}
	}})
	s := b.shard(t, 1)
	var batch pgx.Batch
	batch.Queue(`select 1`)
	if err := s.SendBatch(ctx, &batch).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Exec(ctx, `insert into photos values (1, 'sunset')`); err != nil {
		t.Fatal(err)
	}
	if err := s.QueryRow(ctx, `select title from photos`).Scan(new(string)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id"}, pgx.CopyFromRows([][]any{{2}})); err != nil {
		t.Fatal(err)
	}
	spans := b.take()
	if len(spans) < 4 {
		t.Errorf("got %q", brief(spans))
	}
	for _, span := range spans {
		if peer, at := value(span, "network.peer.address"), fmt.Sprint(value(span, "network.peer.port")); peer == nil || at != port || value(span, "server.address") != nil {
			t.Errorf("%s: peer %v, port %s, expected port %s and no server.address", span.Name, peer, at, port)
		}
	}
}

// What was sent down a line together has one span each, under its own caller's, also what is sent again because another failed.
func TestPipelinedStatements(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	for !sentTogether(ctx, t, b) && !t.Failed() && ctx.Err() == nil { // as long as the machine is slow, and so the statement
	}
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
}

// sentTogether has callers wait for the only connection, and tells whether their statements were sent together.
func sentTogether(ctx context.Context, t *testing.T, b *bundle) bool {
	t.Helper()
	s := b.shard(t, 1)
	const query = `select 10 / $1::int`
	var n int
	for range 8 { // until it is known not to be slow
		if err := s.QueryRow(ctx, query, 1).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	b.take()
	tx, err := s.Begin(ctx) // has the only connection
	if err != nil {
		t.Fatal(err)
	}
	const callers = 8
	parents := map[trace.SpanID]int{}
	var mu sync.Mutex
	var calls sync.WaitGroup
	for i := range callers {
		calls.Go(func() {
			ctx, request := b.caller(ctx)
			mu.Lock()
			parents[request.SpanContext().SpanID()] = i
			mu.Unlock()
			var n int
			err := s.QueryRow(ctx, query, i).Scan(&n)
			if (err != nil) != (i == 0) {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	for b.Stats()[0].Waiting < callers {
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	together := 0
	for _, span := range b.take() {
		if span.Name == "BEGIN" || span.Name == "ROLLBACK" {
			continue
		}
		i, ok := parents[span.Parent.SpanID()]
		if !ok {
			t.Errorf("a span has another parent, or one that had a child: %v", span.Parent)
			continue
		}
		delete(parents, span.Parent.SpanID())
		if n, _ := value(span, "kiloshard.together").(int64); n > 1 {
			together++
		}
		if waited, _ := value(span, "kiloshard.waited").(float64); waited <= 0 {
			t.Errorf("caller %d: waited %v", i, waited)
		}
		want := codes.Unset
		if i == 0 {
			want = codes.Error
		}
		if span.Status.Code != want || i == 0 && value(span, "db.response.status_code") != "22012" {
			t.Errorf("caller %d: %v, %v", i, span.Status, span.Attributes)
		}
	}
	if len(parents) > 0 {
		t.Errorf("%d callers without a span", len(parents))
	}
	return together > 0
}

// A host that is down shows, though nothing was sent.
func TestUnsent(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: func(hosts []shards.Host) {
		hosts[1].DSN = "postgres://app:hunter2@127.0.0.1:1/app"
	}})
	for _, do := range []func(s router.Shard) error{
		func(s router.Shard) error { _, err := s.Exec(ctx, `select 1`); return err },
		func(s router.Shard) error { _, err := s.Begin(ctx); return err },
		func(s router.Shard) error { return s.SendBatch(ctx, &pgx.Batch{}).Close() },
	} {
		if err := do(b.shard(t, 3)); err == nil {
			t.Error("no error")
		}
	}
	want := []string{"SELECT on 3: unreachable", "BEGIN on 3: unreachable", "postgresql on 3: unreachable"}
	spans := b.take()
	if got := brief(spans); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if text := fmt.Sprintf("%+v", spans); strings.Contains(text, "hunter2") {
		t.Error("a password is in a span")
	}
}

// Texts and arguments are only in spans if they were asked for.
func TestTextsAndArguments(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		cfg             tracing.Config
		text, argument  any
		namedArg, quote bool
	}{
		{"default", tracing.Config{}, nil, nil, false, false},
		{"text", tracing.Config{QueryText: true}, "select $1::text::int", nil, false, false},
		{"all", tracing.Config{QueryText: true, Arguments: true}, "select $1::text::int", "hunter2", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{tracing: test.cfg})
			s := b.shard(t, 0)
			_, _ = s.Exec(ctx, `select $1::text::int`, "hunter2")
			span := b.take()[0]
			if got := value(span, "db.query.text"); got != test.text {
				t.Errorf("text: got %v, want %v", got, test.text)
			}
			if got := value(span, "db.query.parameter.0"); got != test.argument {
				t.Errorf("argument: got %v, want %v", got, test.argument)
			}
			if got := strings.Contains(fmt.Sprintf("%+v", span), "hunter2"); got != test.quote {
				t.Errorf("an argument in a span: %v, expected %v", got, test.quote)
			}
			_, _ = s.Exec(ctx, `select @a::text`, pgx.NamedArgs{"a": "x"})
			if got := value(b.take()[0], "db.query.parameter.a") == "x"; got != test.namedArg {
				t.Errorf("named argument: %v, expected %v", got, test.namedArg)
			}
		})
	}
}

// A trace that is not sampled has no spans, and its own span is left alone.
func TestUnsampled(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{sampler: sdk.ParentBased(sdk.NeverSample())})
	ctx, request := b.caller(ctx)
	for range 2 {
		if _, err := b.shard(t, 0).Exec(ctx, `select $1::int`, 1); err != nil {
			t.Fatal(err)
		}
	}
	request.End()
	if spans := b.spans.GetSpans(); len(spans) > 0 {
		t.Errorf("got %q", brief(spans))
	}
}

// A transaction that is tried again says so.
func TestAttempts(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	runs := 0
	err := router.Retry{}.Tx(ctx, b.shard(t, 0), pgx.TxOptions{}, func(tx pgx.Tx) error {
		if runs++; runs == 1 {
			_, err := tx.Exec(ctx, `do $$ begin raise serialization_failure; end $$`)
			return err
		}
		_, err := tx.Exec(ctx, `select 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, span := range b.take() {
		got = append(got, fmt.Sprint(brief(tracetest.SpanStubs{span})[0], " ", value(span, "kiloshard.attempt")))
	}
	want := []string{
		"BEGIN on 0 <nil>", "DO on 0: 40001 <nil>", "ROLLBACK on 0 <nil>",
		"BEGIN on 0 2", "SELECT on 0 2", "COMMIT on 0 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
