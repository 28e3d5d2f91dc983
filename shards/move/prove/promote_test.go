package prove_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// startPair starts a cluster of a host with four shards, and a standby of it, which the map has as a host without shards. Their role is no
// superuser, and has the rights that privileges.md names.
func startPair(t *testing.T) *cluster {
	t.Helper()
	return startPairOf(t, 4)
}

// startPairOf is startPair with more shards.
func startPairOf(t *testing.T, count int) *cluster {
	t.Helper()
	c := &cluster{t: t, servers: map[string]*localpg.Server{}, links: map[string]*link{}, holder: &holder{}, files: new(int)}
	c.store = shardtest.Hosts(t, 1)[0].ConnString() // nothing befalls it here
	c.servers["pg-a"] = startHost(t, localpg.Config{Settings: hostSettings(nil)})
	c.owner = "photos_owner"
	c.exec("pg-a", fmt.Sprintf(`create role %s login password '%s'; alter database %s owner to %[1]s; grant pg_read_all_stats to %[1]s; grant execute on function pg_promote to %[1]s`,
		c.owner, ownerPassword, database))
	backup, err := c.servers["pg-a"].Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	standby, err := backup.Standby(t.Context(), "standby", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.servers["pg-b"] = standby
	for name, server := range c.servers {
		c.links["mover "+name] = newLink(t, server.DSN(database))
	}
	c.links["mover store"] = newLink(t, c.store)
	c.links["pg-b pg-a"] = c.links["mover pg-a"] // nothing goes there
	c.direct, c.mover = c.open(c.directly), c.open(c.throughLinks)
	c.makeShards(shards.Placement{Host: "pg-a", Shards: shards.SetOfRanges(shards.Range{Last: shards.Number(count - 1)})})
	config := c.load(c.direct).Config()
	config.Hosts = append(config.Hosts, hostOf("pg-b"))
	if _, err := c.direct.Swap(t.Context(), config.Version, mapstore.Change{Config: config, By: "test"}); err != nil {
		t.Fatal(err)
	}
	return c
}

// crowds are callers of a shard that leaves, and of one that stays.
type crowds struct {
	c            *cluster
	leave, stays *crowd
}

func (c *cluster) crowds() crowds {
	c.t.Helper()
	return crowds{c, c.callers(), c.callersOf(c.direct, 0)}
}

// settled checks what is true after a promotion that ended well, or was taken back.
func (w crowds) settled(home string) {
	c := w.c
	c.t.Helper()
	if now, _ := c.home(); now != home {
		c.t.Errorf("the map has shard 1 on %s, expected %s", now, home)
	}
	w.leave.some()
	w.stays.some()
	for n := range shards.Number(4) {
		c.servedShard(n, map[bool]string{true: home, false: "pg-a"}[n%2 == 1])
	}
	c.whole(home)
	w.leave.check(home)
	w.stays.check("pg-a")
	if home == "pg-a" {
		return
	}
	for n, at := range map[shards.Number][2]string{1: {"pg-a", "pg-b"}, 0: {"pg-b", "pg-a"}} {
		err := c.try(at[0], fmt.Sprintf(`select from shard_%05d.photos`, n))
		if want := fmt.Sprintf("shard %d moved to %s at", n, at[1]); err == nil || !strings.Contains(err.Error(), want) {
			c.t.Errorf("a stale reader on %s: got %v, expected %s", at[0], err, want)
		}
	}
	if report, err := move.Verify(c.t.Context(), move.Config{Map: c.load(c.direct), Store: c.direct}); err != nil || report.Done.Len() != 4 {
		c.t.Errorf("verify: %+v, %v", report, err)
	}
	if _, err := move.Clean(c.t.Context(), c.load(c.direct), shards.Set{}); err != nil {
		c.t.Error(err)
	}
	for _, host := range []string{"pg-a", "pg-b"} {
		if found := c.text(host, `select coalesce(string_agg(nspname, ', '), 'none') from pg_namespace where nspname like 'shard\_%\_\_%'`); found != "none" {
			c.t.Errorf("%s has old schemas: %s", host, found)
		}
	}
	differences, err := provision.Verify(c.t.Context(), c.load(c.direct))
	if err != nil || len(differences) > 0 {
		c.t.Errorf("verify: %v, %v", differences, err)
	}
	w.leave.some()
	w.stays.some()
}

// A host is split by promoting its standby, while services write to what leaves and to what stays: none of their calls fails.
func TestPromote(t *testing.T) {
	t.Parallel()
	c := startPair(t)
	w := c.crowds()
	cfg := c.promotion()
	var fenced, switched time.Time
	tell := cfg.Events
	cfg.Events = func(e progress.Event) {
		tell(e)
		switch point(e) {
		case "cutover: fences made":
			fenced = time.Now()
		case "promote: switched":
			switched = time.Now()
		}
		if e.Kind == progress.Retrying {
			fenced = time.Now()
		}
	}
	report, err := move.Promote(t.Context(), cfg)
	if err != nil || report.Done.String() != "1,3" {
		t.Fatalf("got %+v, %v", report, err)
	}
	w.settled("pg-b")
	pause := switched.Sub(fenced)
	t.Logf("fenced for less than %s", pause.Round(time.Millisecond))
	if missed := w.leave.missed.Load() + w.stays.missed.Load(); missed > 0 && pause < 2*time.Second { // a router waits for 3 s
		t.Errorf("%d calls failed", missed)
	}
}

// A mover is killed at each point of a promotion. Then that is resumed, or taken back, which it can be until the standby is promoted.
// Unless the test is full, it is killed once on either side of the promotion.
func TestKilledPromotion(t *testing.T) {
	t.Parallel()
	points := []string{
		"cutover: begun", "cutover: fences made", "cutover: fenced", "cutover: replayed", "promote: begun", "promote: promoted",
		"promote: unfenced", "promote: switched", "switched: begun", "switched: fences dropped", "switched: copies fenced",
	}
	short := map[string]bool{"cutover: fenced": true, "promote: promoted": false}
	for _, at := range points {
		for _, back := range []bool{true, false} {
			if only, ok := short[at]; !pgtest.Full() && (!ok || back != only) {
				continue
			}
			t.Run(fmt.Sprintf("%s, back %t", at, back), func(t *testing.T) {
				c := startPair(t)
				w := c.crowds()
				c.killedMover(promotes, "pg-a", "pg-b", at)
				for n := range shards.Number(4) {
					c.servedOnce(n)
				}
				other := c.config("pg-a", "pg-b")
				other.Shards = shards.SetOf(0)
				if _, err := move.Run(t.Context(), other); !errors.Is(err, move.ErrUnderWay) {
					t.Errorf("a move of what stays: %v", err)
				}
				w.settled(c.endPromotion(back, slices.Index(points, at) >= slices.Index(points, "promote: promoted")))
			})
		}
	}
}

// endPromotion takes a promotion back, unless the standby is promoted, or resumes it. It returns where the shards are then.
func (c *cluster) endPromotion(back, promoted bool) string {
	c.t.Helper()
	cfg := c.inLedger()
	if back {
		cfg.Shards = shards.Set{}
		_, err := move.Abort(c.t.Context(), cfg)
		switch {
		case err == nil && promoted:
			c.t.Error("a promotion was taken back")
		case err != nil && !promoted:
			c.t.Error(err)
		case err == nil:
			return "pg-a"
		}
	}
	cfg.Shards = shards.SetOf(3) // of a promotion all go together
	if report, err := move.Resume(c.t.Context(), cfg); err != nil || report.Done.String() != "1,3" {
		c.t.Errorf("resume: %+v, %v", report, err)
	}
	return "pg-b"
}

// servedOnce checks that not both hosts take writes to a shard.
func (c *cluster) servedOnce(n shards.Number) {
	c.t.Helper()
	var serve []string
	for _, host := range []string{"pg-a", "pg-b"} {
		if c.try(host, fmt.Sprintf(`begin; insert into shard_%05d.photos (title) values ('served'); rollback`, n)) == nil {
			serve = append(serve, host)
		}
	}
	if len(serve) > 1 {
		c.t.Errorf("shard %d: %s take writes", n, serve)
	}
}

// Servers are killed, or cut off from the mover, in the middle of a promotion. Unless the test is full, each of them once.
func TestPromotionFaults(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, f := range []struct {
		name, at string
		strike   func(c *cluster)
		mend     func(c *cluster)
		seen     bool // services need what it strikes
		back     bool // then it is taken back, else resumed
		want     string
	}{
		{"the host killed", "cutover: fenced", func(c *cluster) { c.kill("pg-a") }, func(c *cluster) { c.restart("pg-a") }, true, false, "pg-b"},
		{"the host killed", "cutover: replayed", func(c *cluster) { c.kill("pg-a") }, func(c *cluster) { c.restart("pg-a") }, true, true, "pg-a"},
		{"the host killed", "promote: promoted", func(c *cluster) { c.kill("pg-a") }, func(c *cluster) { c.restart("pg-a") }, true, true, "pg-b"},
		{"the standby killed", "cutover: fenced", func(c *cluster) { c.kill("pg-b") }, func(c *cluster) { c.restart("pg-b") }, false, false, "pg-a"},
		{"the standby killed", "promote: begun", func(c *cluster) { c.kill("pg-b") }, func(c *cluster) { c.restart("pg-b") }, false, false, "pg-b"},
		{"the standby killed", "promote: begun", func(c *cluster) { c.kill("pg-b") }, func(c *cluster) { c.restart("pg-b") }, false, true, "pg-a"},
		{"the new host killed", "promote: promoted", func(c *cluster) { c.kill("pg-b") }, func(c *cluster) { c.restart("pg-b") }, true, false, "pg-b"},
		{"the host cut off", "cutover: fenced", func(c *cluster) { c.links["mover pg-a"].cut() }, func(c *cluster) { c.links["mover pg-a"].heal() }, false, false, "pg-b"},
		{"the standby cut off", "promote: begun", func(c *cluster) { c.links["mover pg-b"].cut() }, func(c *cluster) { c.links["mover pg-b"].heal() }, false, true, "pg-a"},
		{"the host cut off", "promote: switched", func(c *cluster) { c.links["mover pg-a"].cut() }, func(c *cluster) { c.links["mover pg-a"].heal() }, false, true, "pg-b"},
	} {
		if tried[f.name] && !pgtest.Full() {
			continue
		}
		tried[f.name] = true
		t.Run(fmt.Sprintf("%s, %s, back %t", f.name, f.at, f.back), func(t *testing.T) {
			c := startPair(t)
			w := c.crowds()
			w.leave.mayFail.Store(f.seen)
			w.stays.mayFail.Store(f.seen)
			cfg := c.promotion()
			tell, promoted := cfg.Events, false
			cfg.Events = func(e progress.Event) {
				tell(e)
				promoted = promoted || point(e) == "promote: promoted"
				if point(e) == f.at {
					f.strike(c)
				}
			}
			report, err := move.Promote(t.Context(), cfg)
			t.Log(err)
			if err == nil {
				t.Error("it noticed nothing")
			}
			f.mend(c)
			home := "pg-a"
			if report.Resumable.Len() > 0 {
				home = c.endPromotion(f.back, promoted)
			}
			if home != f.want {
				t.Errorf("the shards are on %s, expected %s", home, f.want)
			}
			w.settled(home)
		})
	}
}

// A standby that does not replay the fences, since a reader holds a lock there, has them taken down before routers have waited for too
// long: until it goes on, or until --patience is over.
func TestStandbyThatLags(t *testing.T) {
	t.Parallel()
	c := startPair(t)
	w := c.crowds()
	for _, ends := range []bool{false, true} {
		reader, err := c.connect("pg-b")
		if err != nil {
			t.Fatal(err)
		}
		cfg := c.promotion()
		cfg.LockTimeout = time.Second // a transaction that is younger is not waited for
		cfg.MaxPause, cfg.RetryLimit = 300*time.Millisecond, 2*time.Second
		if ends {
			cfg.RetryLimit = time.Minute
		}
		tell, tries := cfg.Events, 0
		cfg.Events = func(e progress.Event) {
			tell(e)
			switch {
			case point(e) == "cutover: fences made":
				_, err = reader.Exec(t.Context(), `begin; select from shard_00001.photos`)
			case e.Kind == progress.Retrying:
				tries++
			case ends && e.Kind == progress.Waiting:
				_ = reader.Close(context.Background())
			}
		}
		report, failed := move.Promote(t.Context(), cfg)
		if err != nil || tries == 0 || (failed == nil) != ends || report.Resumable.Len() > 0 {
			t.Errorf("it ends: %t: got %+v, %v after %d tries; the reader %v", ends, report, failed, tries, err)
		}
		if reads := fmt.Sprintf("process %d", reader.PgConn().PID()); !ends && !strings.Contains(failed.Error(), reads) {
			t.Errorf("it does not name the reader, %s: %v", reads, failed)
		}
		_ = reader.Close(context.Background())
		w.settled(map[bool]string{true: "pg-b", false: "pg-a"}[ends])
	}
}

// Replay that is paused just before the promotion ends with it.
func TestPausedBeforePromotion(t *testing.T) {
	t.Parallel()
	c := startPair(t)
	w := c.crowds()
	cfg := c.promotion()
	tell := cfg.Events
	cfg.Events = func(e progress.Event) {
		tell(e)
		if point(e) == "promote: begun" {
			c.exec("pg-b", `select pg_wal_replay_pause()`)
			c.eventually(func() string { return "replay is not paused" }, func() bool {
				return c.text("pg-b", `select pg_get_wal_replay_pause_state()`) == "paused"
			})
		}
	}
	if report, err := move.Promote(t.Context(), cfg); err != nil || report.Done.String() != "1,3" {
		t.Errorf("got %+v, %v", report, err)
	}
	w.settled("pg-b")
}

// A mover that loses its session to the host opens another one, and takes the promotion back.
func TestPromotionLosesItsSession(t *testing.T) {
	t.Parallel()
	c := startPair(t)
	w := c.crowds()
	points := []string{"cutover: replayed"}
	if pgtest.Full() {
		points = append(points, "cutover: fences made", "cutover: fenced")
	}
	for _, at := range points {
		cfg := c.promotion()
		tell := cfg.Events
		cfg.Events = func(e progress.Event) {
			tell(e)
			if point(e) == at {
				c.exec("pg-a", `select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = 'kiloshard move'`)
			}
		}
		report, err := move.Promote(t.Context(), cfg)
		if err == nil || report.Resumable.Len() > 0 {
			t.Errorf("%s: got %+v, %v", at, report, err)
		}
		w.settled("pg-a")
	}
}

// An interrupt takes a promotion back, until the standby is about to be promoted: then it has to wait.
func TestInterruptedPromotion(t *testing.T) {
	t.Parallel()
	c := startPair(t)
	w := c.crowds()
	points := []string{"cutover: fenced", "promote: begun"}
	if pgtest.Full() {
		points = append([]string{"cutover: fences made"}, points...)
	}
	for _, at := range points {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := c.promotion()
		tell := cfg.Events
		cfg.Events = func(e progress.Event) {
			tell(e)
			if point(e) == at {
				cancel()
			}
		}
		report, err := move.Promote(ctx, cfg)
		cancel()
		if last := at == "promote: begun"; !last && (err == nil || report.Resumable.Len() > 0) {
			t.Errorf("%s: got %+v, %v", at, report, err)
		} else if !last {
			w.settled("pg-a")
		}
		if moves, err := move.Status(t.Context(), c.load(c.direct)); err != nil || len(moves) == 0 {
			t.Errorf("%s: the ledger says %v, %v", at, moves, err)
		}
	}
	if now, _ := c.home(); now != "pg-b" {
		t.Errorf("the shard is on %s", now)
	}
	if _, err := move.Resume(t.Context(), c.inLedger()); err != nil { // the interrupt came before its end
		t.Error(err)
	}
	w.settled("pg-b")
}

func (c *cluster) promotion() move.PromoteConfig {
	cfg := c.inLedger()
	return move.PromoteConfig{Map: cfg.Map, Store: cfg.Store, Shards: cfg.Shards, To: "pg-b", Events: cfg.Events}
}

// inLedger is the config that resumes the promotion, or takes it back.
func (c *cluster) inLedger() move.Config {
	cfg := c.config("pg-a", "pg-b").Config
	cfg.Shards = shards.SetOf(1, 3)
	return cfg
}
