package htmlreport_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/htmlreport"
	"github.com/kiloshard/kiloshard/shards"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	m := noHosts(t, 10)
	var c htmlreport.Collector
	for n := range shards.Number(4) {
		c.Event(ended(n, time.Millisecond))
	}
	c.Event(migrate.Event{Kind: migrate.PhaseBegan, Phase: "all hosts"})
	for range 2 {
		c.Event(migrate.Event{Kind: migrate.ShardRetry, Shard: 4, Err: errors.New("no lock")})
	}
	c.Event(migrate.Event{Kind: migrate.ShardFailed, Shard: 4, From: 2, To: 2, Took: 3 * time.Second, Err: errors.New("no lock")})
	report := migrate.Report{Run: "r1", Target: 5, Done: set(t, "0-2,8"), UpToDate: set(t, "5")}
	p := write(t, &c, m, report, &shards.PartialError{
		Done: report.Done, NotAttempted: set(t, "6-7"), Causes: []error{migrate.ErrTooManyFailures},
		Failed: []*shards.ShardError{shardError(m, 3, migrate.ErrNotFlushed), shardError(m, 4, errors.New("no lock"))},
	})
	p.has(0, "d0", "shard 0 (shard_00000 on pg-a): done, version 1 → 5 in 1ms", "")
	p.has(3, "f", "shard 3 (shard_00003 on pg-a): failed, version 1 → 5 in 1ms: migrated, but the server did not confirm", "on disk")
	p.has(4, "f", "shard 4 (shard_00004 on pg-a): failed, version 2 → 2 in 3s, tried 3 times: no lock", "")
	p.has(5, "u", "shard 5 (shard_00005 on pg-b): up to date", "")
	p.has(6, "n", "shard 6 (shard_00006 on pg-b): not attempted", "")
	p.has(8, "d", "shard 8 (shard_00008 on pg-b): done", "done") // no event told of it
	p.has(9, "m", "shard 9 (shard_00009 on pg-b): not in this run", "")
	equal(t, "slowest", p.rows["slowest"][0], "4|pg-a|2|2|3s|2")
	p.says("partly done", migrate.ErrTooManyFailures.Error())

	p = write(t, &c, m, migrate.Report{Target: 5, Done: m.All()}, nil)
	p.says("to version 5: all done")
	p = write(t, &c, m, migrate.Report{Target: 5, Steps: []migrate.Step{{From: 1, To: 2, Shards: set(t, "4")}}}, &shards.PartialError{
		Failed: []*shards.ShardError{shardError(m, 4, errors.New("no lock"))},
	})
	p.says("to version 5: partly done")
	p = write(t, &htmlreport.Collector{}, m, migrate.Report{Target: 5}, &shards.PartialError{NotAttempted: m.All(), Causes: []error{migrate.ErrNothingRun}})
	p.says("to version 5: nothing is done", "nothing was run")
}

func TestScale(t *testing.T) {
	t.Parallel()
	m := noHosts(t, 64)
	var c htmlreport.Collector
	var wg sync.WaitGroup
	for n := range m.All().All() { // 1 ms to 1 s, each as many times longer than the one before
		took := time.Duration(float64(time.Millisecond) * math.Pow(1000, float64(n)/63))
		wg.Go(func() { c.Event(ended(n, took)) })
	}
	wg.Wait()
	p := write(t, &c, m, migrate.Report{Done: m.All()}, nil)
	classes := make([]string, 64)
	for i, s := range p.squares {
		classes[i] = s.class
	}
	if !slices.IsSorted(classes) {
		t.Errorf("longer ones are not darker: %v", classes)
	}
	equal(t, "bands", fmt.Sprint(slices.Compact(classes)), "[d0 d1 d2 d3 d4 d5]")
	p.says("done in ≤ 3.16ms", "done in ≤ 1s")
	equal(t, "the slowest", p.rows["slowest"][0], "63|pg-b|1|5|1s|0")

	c = htmlreport.Collector{}
	for n := range m.All().All() {
		c.Event(ended(n, 0))
	}
	p = write(t, &c, m, migrate.Report{Done: m.All()}, nil)
	p.has(63, "d0", "shard 63", "in 0s")
}

func TestNothingGetsOut(t *testing.T) {
	t.Parallel()
	m := noHosts(t, 4)
	const evil = `</title><script>alert(1)</script>" onmouseover='x' {{.Run}} <img src=http://example.com/x> & ` + "\x00"
	pg := &pgconn.PgError{Code: `<u>`, Message: evil}
	failed := []*shards.ShardError{shardError(m, 1, &migrate.FileError{File: "001_" + evil + ".sql", Line: 3, Statement: evil, Err: pg})}
	report := migrate.Report{
		Run: evil, By: evil, Done: set(t, "0"), Steps: []migrate.Step{{From: 0, To: 1, Shards: set(t, "0")}},
		Changed: []migrate.ChangedFile{{Version: 1, File: evil, Shards: set(t, "0")}},
	}
	p := write(t, &htmlreport.Collector{}, m, report, &shards.PartialError{Failed: failed, NotAttempted: set(t, "2-3"), Causes: []error{errors.New(evil)}})
	equal(t, "squares", len(p.squares), 4)
	equal(t, "rows", len(p.rows["failures"]), 1)
	visible := strings.TrimSuffix(evil, "\x00")
	p.says("by "+visible, visible)
	if !strings.Contains(p.squares[1].title, visible) {
		t.Errorf("the title of the failed shard is %q", p.squares[1].title)
	}
	for _, never := range []string{"<script", "<img", "s3cr3t", " onmouseover='", "href=", "@import", "url("} {
		if strings.Contains(p.source, never) {
			t.Errorf("it has %s in it", never)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	const most = 2_000_000
	m := noHosts(t, 8192)
	var c htmlreport.Collector
	partial := &shards.PartialError{}
	size := func(report migrate.Report) string {
		var out strings.Builder
		if err := c.Write(&out, m, report, partial); err != nil {
			t.Fatal(err)
		}
		equal(t, "squares", strings.Count(out.String(), ` title="shard `), 8192)
		if out.Len() > most {
			t.Errorf("it has %d bytes", out.Len())
		}
		t.Logf("%d of %d shards done, %d failed: %d bytes", report.Done.Len(), m.Len(), len(partial.Failed), out.Len())
		return out.String()
	}
	for n := range m.All().All() {
		c.Event(ended(n, time.Duration(n+1)*time.Millisecond))
	}
	size(migrate.Report{Done: m.All(), Steps: []migrate.Step{{From: 1, To: 5, Shards: m.All()}}})

	for n := range m.All().All() {
		c.Event(migrate.Event{Kind: migrate.ShardFailed, Shard: n, From: 2, To: 2, Took: time.Duration(n) * time.Millisecond})
		partial.Failed = append(partial.Failed, shardError(m, n, &migrate.FileError{
			File: "003_unique_names_of_users.sql", Line: 12, Statement: strings.Repeat("create unique index on users (name); ", 100),
			Err: &pgconn.PgError{Code: "23505", Message: fmt.Sprintf("user %d is there twice", n), Detail: strings.Repeat("twice ", 100)},
		}))
	}
	source := size(migrate.Report{})
	equal(t, "failures", strings.Count(source, `<td class="k">23505</td>`), 200)
	equal(t, "those left out", strings.Contains(source, "7992 more failed shards"), true)
}

func TestFailuresByOneCause(t *testing.T) {
	t.Parallel()
	m := noHosts(t, 6)
	partial := &shards.PartialError{}
	for n := range m.All().All() {
		err := errors.New("the same")
		if n == 4 {
			err = &migrate.FileError{File: "001_users.sql", Line: 2, Rendered: true, Err: errors.New("its own")}
		}
		partial.Failed = append(partial.Failed, shardError(m, n, err))
	}
	p := write(t, &htmlreport.Collector{}, m, migrate.Report{}, partial)
	equal(t, "failures", strings.Join(p.rows["failures"], "\n"), "0-3,5 (5)|pg-a, pg-b||||the same\n"+
		"4|pg-b||001_users.sql|2 rendered|migration 001_users.sql, line 2 of its rendered text: its own")
}

func TestWriterThatFails(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	if err := (&htmlreport.Collector{}).Write(failing{full}, noHosts(t, 2), migrate.Report{}, nil); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
