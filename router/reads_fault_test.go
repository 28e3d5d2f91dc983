package router_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// readLoad reads with all its might until it is stopped, and notes every read that fails.
type readLoad struct {
	reads   atomic.Int64
	stop    context.CancelFunc
	group   errgroup.Group
	answers atomic.Int64 // on replicas
	failed  atomic.Bool  // there will be no more
}

func startReads(ctx context.Context, t *testing.T, b *readBundle, reads router.Reads) *readLoad {
	t.Helper()
	l := &readLoad{}
	running, stop := context.WithCancel(ctx)
	l.stop = stop
	t.Cleanup(stop)
	for i := range 12 {
		l.group.Go(func() error {
			for n := i; running.Err() == nil; n++ {
				var owner int64
				var recovering bool
				s := b.shard(t, n%readShards)
				const query = `select owner, pg_is_in_recovery() from photos where id = $1`
				if err := s.ReadOnly(reads).QueryRow(ctx, query, 1+n%8).Scan(&owner, &recovering); err != nil {
					l.failed.Store(true)
					return err
				}
				if owner != int64(s.Number()) {
					return errors.New("a row of another shard")
				}
				l.reads.Add(1)
				if recovering {
					l.answers.Add(1)
				}
			}
			return nil
		})
	}
	return l
}

// more waits for more reads, on replicas if so wanted.
func (l *readLoad) more(ctx context.Context, t *testing.T, counter *atomic.Int64) {
	t.Helper()
	want := counter.Load() + 200
	eventually(ctx, t, func() bool { return l.failed.Load() || counter.Load() >= want })
}

func (l *readLoad) end(t *testing.T) {
	t.Helper()
	l.stop()
	if err := l.group.Wait(); err != nil {
		t.Errorf("a read failed: %v", err)
	}
}

// TestReplicaThatFails has one standby go through all that a replica can come to.
func TestReplicaThatFails(t *testing.T) {
	t.Parallel()
	servers := theReplicated(t)
	standby := newStandby(t, servers, "failing")
	t.Run("dies under load", func(t *testing.T) { diesUnderLoad(t, standby, servers.harmless[0]) })
	t.Run("hangs under load", func(t *testing.T) { hangsUnderLoad(t, standby) })
	t.Run("second server wins", func(t *testing.T) { secondServerWins(t, standby) })
	t.Run("is promoted", func(t *testing.T) { isPromoted(t, standby) })
	t.Run("is the primary", func(t *testing.T) { isThePrimary(t, standby, servers.harmless[0]) })
}

// diesUnderLoad kills one of two replicas, then kills it as the only one, and starts it again: no read fails.
func diesUnderLoad(t *testing.T, standby, other *localpg.Server) {
	for _, replicas := range [][]string{{standby.DSN("app"), other.DSN("app")}, {standby.DSN("app")}} {
		b, ctx := withReplicas(t, options{}, replicas...)
		b.awaitAll(ctx, t)
		l := startReads(ctx, t, b, router.Reads{MaxLag: time.Minute})
		l.more(ctx, t, &l.answers)
		if err := standby.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		l.more(ctx, t, &l.reads)
		b.await(ctx, t, "the end of a dead replica", func(s router.ReadStats) bool { return !s.Replicas[0].Used })
		if err := standby.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		b.awaitAll(ctx, t)
		l.more(ctx, t, &l.answers)
		l.end(t)
	}
}

// hangsUnderLoad stops all processes of the only replica: reads that wait for it are answered by the primary.
func hangsUnderLoad(t *testing.T, standby *localpg.Server) {
	b, ctx := withReplicas(t, options{}, standby.DSN("app"))
	b.awaitAll(ctx, t)
	l := startReads(ctx, t, b, router.Reads{MaxLag: time.Minute})
	l.more(ctx, t, &l.answers)
	thaw := freeze(t, standby)
	b.await(ctx, t, "the end of a replica that hangs", func(s router.ReadStats) bool { return !s.Replicas[0].Used })
	l.more(ctx, t, &l.reads)
	l.more(ctx, t, &l.reads)
	thaw()
	b.awaitAll(ctx, t)
	l.more(ctx, t, &l.answers)
	l.end(t)
}

// secondServerWins has the only replica hang, and nobody notice but those who wait: readers with Hedge are answered by the
// primary meanwhile.
func secondServerWins(t *testing.T, standby *localpg.Server) {
	b, ctx := withReplicas(t, options{}, standby.DSN("app"))
	b.awaitAll(ctx, t)
	for _, reads := range []router.Reads{{MaxLag: time.Minute, Hedge: time.Millisecond}, {MaxLag: time.Minute, HedgeP95: true}} {
		s := b.shard(t, 1)
		const query = `select owner from photos where id = any($1)`
		ids := []int64{1}
		var owner int64
		for range 10 {
			if err := s.ReadOnly(reads).QueryRow(ctx, query, ids).Scan(&owner); err != nil {
				t.Fatal(err)
			}
		}
		for won := b.ReadStats()[0].HedgesWon; b.ReadStats()[0].HedgesWon == won; {
			thaw := freeze(t, standby)
			if err := s.ReadOnly(reads).QueryRow(ctx, query, ids).Scan(&owner); err != nil || owner != 1 {
				t.Fatalf("got %d, error %v", owner, err)
			}
			thaw()
			b.awaitAll(ctx, t)
		}
	}
}

// TestMapChangesUnderReads has replicas come and go in the map, and with them the host, all the while: no read fails.
func TestMapChangesUnderReads(t *testing.T) {
	t.Parallel()
	b, ctx := withReplicas(t, options{})
	with := b.Map()
	host := with.Hosts()[0]
	host.Replicas = host.Replicas[:1]
	without, err := shardtest.MapConfig(readShards, []shards.Host{host}).Map()
	if err != nil {
		t.Fatal(err)
	}
	for _, hedge := range []time.Duration{0, time.Millisecond} {
		b.awaitAll(ctx, t)
		l := startReads(ctx, t, b, router.Reads{MaxLag: time.Minute, Hedge: hedge})
		for i := range 8 {
			want := l.reads.Load() + 25
			eventually(ctx, t, func() bool { return l.failed.Load() || l.reads.Load() >= want })
			m := []*shards.Map{without, with}[i%2]
			if err := b.SetMap(m); err != nil {
				t.Fatal(err)
			}
		}
		l.more(ctx, t, &l.answers)
		l.end(t)
	}
}

// TestFewReadsAreSentTwice has everything be slower than readers wish: the extra load stays within its bound.
func TestFewReadsAreSentTwice(t *testing.T) {
	t.Parallel()
	b, ctx := withReplicas(t, options{})
	b.awaitAll(ctx, t)
	r := b.shard(t, 0).ReadOnly(router.Reads{Hedge: time.Nanosecond})
	hedged := func() uint64 { return b.ReadStats()[0].Hedged }
	for reads := 1; reads <= 600 || hedged() == 0; reads++ {
		var one int
		if err := r.QueryRow(ctx, `select 1`).Scan(&one); err != nil {
			t.Fatal(err)
		}
		if n := hedged(); n > uint64(reads/10+17) {
			t.Fatalf("%d of %d reads were sent twice", n, reads)
		}
	}
}

// isPromoted promotes a replica: it is a primary of its own from then on, and not read any more.
func isPromoted(t *testing.T, standby *localpg.Server) {
	b, ctx := withReplicas(t, options{}, standby.DSN("app"))
	b.awaitAll(ctx, t)
	r := b.shard(t, 0).ReadOnly(router.Reads{MaxLag: time.Minute})
	on(ctx, t, standby, `select pg_promote()`)
	if _, err := r.Exec(ctx, `insert into photos values (2000, 1, 'x')`); sqlState(err) != "25006" {
		t.Errorf("got %v", err)
	}
	b.await(ctx, t, "the end of a promoted replica", func(s router.ReadStats) bool {
		return strings.Contains(s.Replicas[0].Why, "not a standby")
	})
	var recovering bool
	if err := r.QueryRow(ctx, `select pg_is_in_recovery()`).Scan(&recovering); err != nil {
		t.Fatal(err)
	}
	on(ctx, t, standby, `insert into shard_00000.photos values (2001, 1, 'only here')`)
	if err := r.QueryRow(ctx, `select from photos where id = 2001`).Scan(); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("got %v", err)
	}
}

// TestWrongReplicasAreNotUsed has the map name servers that are no replicas of the host.
func TestWrongReplicasAreNotUsed(t *testing.T) {
	t.Parallel()
	servers := theReplicated(t)
	b, ctx := withReplicas(t, options{}, servers.primary().DSN("app"), "postgres://app:secret@127.0.0.1:1/app", routertest.Server.DSN("postgres"))
	b.await(ctx, t, "what is wrong with each", func(s router.ReadStats) bool {
		for i, why := range []string{"not a standby", "connect", "not a standby"} {
			if !strings.Contains(s.Replicas[i].Why, why) {
				return false
			}
		}
		return true
	})
	for _, r := range b.ReadStats()[0].Replicas {
		if r.Used || strings.Contains(r.Why, "secret") {
			t.Errorf("got %+v", r)
		}
	}
	// The standby of a cluster that is not the host's.
	other, ctx := setup(t, options{config: withReplica(servers.harmless[0].DSN("app"))})
	reader := other.shard(t, 0).ReadOnly(router.Reads{})
	eventually(ctx, t, func() bool {
		var one int
		if err := reader.QueryRow(ctx, `select 1`).Scan(&one); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(other.ReadStats()[0].Replicas[0].Why, "another cluster")
	})
}

// isThePrimary has the primary be one that was promoted: a replica that went on following the old one may have what this one
// never had. One that follows it is used.
func isThePrimary(t *testing.T, promoted, other *localpg.Server) {
	backup, err := promoted.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	follower, err := backup.Standby(t.Context(), "follower", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := follower.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b, ctx := withReplicasOf(t, promoted, options{}, other.DSN("app"), follower.DSN("app"))
	b.await(ctx, t, "a follower of the new primary", func(s router.ReadStats) bool { return s.Replicas[1].Used })
	b.await(ctx, t, "word of the other one", func(s router.ReadStats) bool {
		return strings.Contains(s.Replicas[0].Why, "is not known to follow")
	})
}
