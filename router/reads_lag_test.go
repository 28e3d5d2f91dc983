package router_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
)

// TestReplicaThatPauses has one standby stop replaying again and again.
func TestReplicaThatPauses(t *testing.T) {
	t.Parallel()
	servers := theReplicated(t)
	standby := newStandby(t, servers, "pausing")
	t.Run("reads are never older than allowed", func(t *testing.T) { neverOlder(t, standby, servers.harmless[0]) })
	t.Run("readers see their writes", func(t *testing.T) { seeTheirWrites(t, standby, servers.harmless[0]) })
	t.Run("a table is not there", func(t *testing.T) { tableIsNotThere(t, standby) })
}

// neverOlder has a row say what time it was when it was last committed, and a replica whose replay
// is stopped and goes on. A reader must never see a row that another one had taken the place of, as far as its writer
// knew, longer ago than MaxLag when the read began.
func neverOlder(t *testing.T, uneven, other *localpg.Server) {
	b, ctx := withReplicas(t, options{}, other.DSN("app"), uneven.DSN("app"))
	s := b.shard(t, 4)
	if _, err := s.Exec(ctx, `create table if not exists heartbeat as select 0::bigint as beat`); err != nil {
		t.Fatal(err)
	}
	b.awaitAll(ctx, t)
	var beats heartbeats
	running, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return beats.write(ctx, running, b.plain, s.Schema()) })
	var read [2]atomic.Int64 // on the primary, and on replicas
	for _, limit := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		for range 2 {
			group.Go(func() error {
				return beats.check(ctx, running, t, s.ReadOnly(router.Reads{MaxLag: limit}), limit, &read)
			})
		}
	}
	// The one that is stopped ceases to be used as soon as it may be too old, and comes back.
	for range 2 {
		on(ctx, t, uneven, `select pg_wal_replay_pause()`)
		b.await(ctx, t, "the end of a replica that is behind", func(r router.ReadStats) bool {
			return strings.Contains(r.Replicas[1].Why, "old")
		})
		on(ctx, t, uneven, `select pg_wal_replay_resume()`)
		b.awaitAll(ctx, t)
	}
	want := read[1].Load() + 100
	eventually(ctx, t, func() bool { return read[1].Load() >= want })
	stop()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d reads on replicas, %d on the primary", read[1].Load(), read[0].Load())
}

// heartbeats are the times at which beats were known to be committed.
type heartbeats struct {
	at [1 << 16]atomic.Int64 // nanoseconds since testStart, by beat
}

func (h *heartbeats) write(ctx, running context.Context, plain *pgxpool.Pool, schema string) error {
	for beat := 1; running.Err() == nil && beat < len(h.at)-1; beat++ {
		_, err := plain.Exec(ctx, "update "+schema+".heartbeat set beat = $1", beat)
		if err != nil {
			return err
		}
		h.at[beat].Store(int64(time.Since(testStart)))
	}
	return nil
}

var testStart = time.Now()

// check reads until running ends. What it reads must be such that the next beat was not known to be there at the time
// that the limit allows.
func (h *heartbeats) check(ctx, running context.Context, t *testing.T, r router.Reader, limit time.Duration, read *[2]atomic.Int64) error {
	for running.Err() == nil {
		var beat int
		var recovering bool
		began := time.Since(testStart)
		if err := r.QueryRow(ctx, `select beat, pg_is_in_recovery() from heartbeat`).Scan(&beat, &recovering); err != nil {
			return err
		}
		if next := time.Duration(h.at[beat+1].Load()); next != 0 && began-next > limit {
			t.Errorf("read beat %d when the next one had been there for %v, more than %v; on a replica: %v", beat, began-next, limit, recovering)
		}
		if recovering {
			read[1].Add(1)
		} else {
			read[0].Add(1)
		}
	}
	return nil
}

// TestMeasuringEnds has nobody read any more.
func TestMeasuringEnds(t *testing.T) {
	t.Parallel()
	b, ctx := withReplicas(t, options{})
	if b.ReadStats()[0].Measuring {
		t.Error("nobody has read, and replicas are being measured")
	}
	b.awaitAll(ctx, t)
	b.MeasureFor(time.Millisecond)
	eventually(ctx, t, func() bool { return !b.ReadStats()[0].Measuring })
	eventually(ctx, t, func() bool { return !b.replica(0).Used })
	b.MeasureFor(time.Minute)
	b.awaitAll(ctx, t) // it begins again
}

// pauseReplay returns when a standby has stopped replaying.
func pauseReplay(ctx context.Context, t *testing.T, standby *localpg.Server) {
	t.Helper()
	on(ctx, t, standby, `select pg_wal_replay_pause()`)
	eventually(ctx, t, func() bool {
		return valueOn(ctx, t, standby.DSN("app"), `select pg_get_wal_replay_pause_state()`) == "paused"
	})
}

// tableIsNotThere has a table made while no replica replays: a read of it goes to the primary.
func tableIsNotThere(t *testing.T, standby *localpg.Server) {
	b, ctx := withReplicas(t, options{}, standby.DSN("app"))
	b.awaitAll(ctx, t)
	pauseReplay(ctx, t, standby)
	s := b.shard(t, 6)
	if _, err := s.Exec(ctx, `create table if not exists fresh as select 7 as n`); err != nil {
		t.Fatal(err)
	}
	var n int
	for before := b.replica(0).Failed; b.replica(0).Failed == before; { // until the replica was asked
		if err := s.ReadOnly(router.Reads{MaxLag: time.Hour}).QueryRow(ctx, `select n from fresh`).Scan(&n); err != nil || n != 7 {
			t.Fatalf("got %d, error %v", n, err)
		}
	}
}
