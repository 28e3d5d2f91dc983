package rows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestServerKilled kills the server while rows move there and back, and clients write. After a restart another run goes on. At the end each shard has what
// clients have committed, once, and no others; a transaction whose connection was lost is there as a whole, or not at all. make prove kills at more events.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	server := shardtest.OwnServer(t)
	dsn, err := server.CreateDatabase(t.Context(), "photos")
	if err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, shards.Host{Name: "pg-a", DSN: dsn}, 4, service, decisions)
	b.faults = true
	before := b.dump()
	all := b.write(6)
	kill := func(do string, kind rows.Kind, number int) {
		t.Helper()
		all.await(t, 20)
		events := 0
		err := b.do(do, func(e rows.Event) {
			if e.Kind != kind {
				return
			}
			if events++; events == number {
				if err := server.Kill(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		if events < number {
			if t.Logf("there is no event %s %d", kind, number); do == "tables" { // it has ended: for the events of the next one
				err = b.do("back", nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if err == nil {
			t.Fatalf("%s ended well, after the server was killed at %s", do, kind)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.conn = pgtest.Connect(t, dsn)
	}
	end := func(do string) {
		t.Helper()
		if err := b.do(do, nil); err != nil {
			t.Fatal(err)
		}
	}
	numbers, there, again := []int{1}, []rows.Kind{rows.Closed, rows.Copied, rows.Cutover, rows.Validated}, []rows.Kind{rows.Reverted}
	if pgtest.Full() {
		numbers, again = []int{1, 2, 5}, []rows.Kind{rows.Compared, rows.Reverted, rows.Opened}
		there = []rows.Kind{rows.Closed, rows.Made, rows.Copying, rows.Copied, rows.Compared, rows.Cutover, rows.Validated}
	}
	for _, number := range numbers {
		for _, kind := range there {
			kill("tables", kind, number)
		}
		end("tables")
		for _, kind := range again {
			kill("back", kind, number)
		}
		end("back")
	}
	all.await(t, 50)
	all.end()
	all.check(t)
	t.Logf("%d transactions were committed, and %d connections lost", all.commits.Load(), all.maybe.Load())
	if all.maybe.Load() == 0 {
		t.Error("no client lost its connection")
	}
	if after := b.dump(); after != before {
		t.Errorf("the structure has changed: %s", difference(before, after))
	}
}

// TestInterrupted holds that an interrupt ends the command soon, and that another run goes on.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	for _, kind := range []rows.Kind{rows.Closed, rows.Copying, rows.Copied, rows.Compared, rows.Cutover} {
		cfg, ctx := b.until(kind)
		began := time.Now()
		result, err := rows.Tables(ctx, cfg)
		if !errors.Is(err, errStopped) && ctx.Err() == nil {
			t.Errorf("interrupted at %s: %v", kind, err)
		}
		t.Logf("interrupted at %s: %+v after %s, %v", kind, result, time.Since(began), err)
	}
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	b.checkShards(t)
}
