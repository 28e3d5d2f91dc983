package move_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// The size of a shard is what it takes on disk, also before anything was analyzed, and in TOAST tables, which are in another schema.
func TestSizes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, `create table shard_00001.long (n int primary key, text text);
		alter table shard_00001.long alter column text set storage external;
		insert into shard_00001.long select n, repeat('x', 100000) from generate_series(1, 20) n`)
	sizes, err := move.Sizes(t.Context(), b.m)
	if err != nil || sizes[1] < 2_000_000 || sizes[0] > 1_000_000 {
		t.Errorf("got %v, %v", sizes, err)
	}
}

// The rate of writes is what is inserted, updated and deleted between two readings, and not what the counters have had before.
func TestWrites(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, `insert into shard_00001.events (what) select 'before' from generate_series(1, 5000)`)
	b.exec(1, `insert into shard_00003.events (what) select 'before' from generate_series(1, 5000)`)
	b.counted(0, "shard_00001", 5000) // a session's counters are there when it has ended
	b.counted(1, "shard_00003", 5000)
	const over = 5 * time.Second
	began := time.Now()
	var rates map[shards.Number]float64
	measured := make(chan error, 1)
	go func() {
		var err error
		rates, err = move.Writes(t.Context(), b.m, over)
		measured <- err
	}()
	b.eventually("a first reading", 0, `select count(*) > 0 from pg_stat_activity where datname = current_database() and state = 'idle' and query like '%pg_stat_get_tuples_inserted%'`)
	b.exec(0, `insert into shard_00001.events (what) select 'new' from generate_series(1, 3000);
		update shard_00001.events set what = 'changed' where n % 5 = 0; delete from shard_00001.events where n <= 400`)
	if err := <-measured; err != nil {
		t.Fatal(err)
	}
	const rows = 3000 + 8000/5 + 400
	if got, least, most := rates[1], rows/time.Since(began).Seconds(), rows/over.Seconds(); got < least || got > most {
		t.Errorf("%g rows a second, expected %g to %g", got, least, most)
	}
	if len(rates) != 4 || rates[0]+rates[2]+rates[3] != 0 {
		t.Errorf("got %v, expected nothing but shard 1", rates)
	}
}

// counted waits until the statistics of a schema have so many rows inserted.
func (b *bundle) counted(host int, schema string, rows int) {
	b.t.Helper()
	b.eventually("rows in the statistics", host, fmt.Sprintf(`select sum(n_tup_ins) >= %d from pg_stat_user_tables where schemaname = '%s'`, rows, schema))
}

// eventually waits until a query is true.
func (b *bundle) eventually(what string, host int, query string) {
	b.t.Helper()
	for until := time.Now().Add(time.Minute); b.text(host, query) != "t"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			b.t.Fatalf("waited in vain for %s: %s", what, query)
		}
	}
}

// Whoever has seen enough need not wait for the second reading.
func TestWritesInterrupted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := move.Writes(ctx, b.m, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
