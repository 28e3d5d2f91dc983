package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
)

// TestKilledMigrateUp kills kiloshard migrate up with SIGKILL at random moments of its run, every other time
// together with one of the two hosts. After each kill another run has to bring all shards to the newest
// version: all alike, and with each file run exactly once. The hosts write their logs as late as they may, so
// that a host that is killed has forgotten what it had just committed; but not what a run that ended with success
// had done.
//
// make prove kills 30 runs over 512 shards.
func TestKilledMigrateUp(t *testing.T) {
	t.Parallel()
	kills, count := 2, 64
	if pgtest.Full() {
		kills, count = 30, 512
	}
	b := setupKills(t, count)

	// How long a run takes when nobody disturbs it.
	c := b.cluster()
	began := time.Now()
	c.up()
	length := time.Since(began)
	c.check()
	t.Logf("a run over %d shards takes %v", count, length.Round(time.Millisecond))

	// On a busy machine runs take more or less time than the first one did: the draw follows them, and when all kills
	// came too early or too late, there are some more.
	inTheMiddle := 0
	for kill := 0; kill < kills || inTheMiddle == 0; kill++ {
		if kill == 10*kills {
			t.Fatalf("none of %d kills found some shards done and others not", kill)
		}
		c := b.cluster()
		moment, host, what := rand.N(length), -1, "the program"
		if kill%2 == 1 {
			host = rand.IntN(len(b.servers))
			what = "the program and " + hostNames[host]
		}
		succeeded := c.killUp(moment, host)
		taken := "at once"
		if rand.IntN(2) == 0 {
			taken = "when the sessions were gone"
			c.awaitSessions()
			c.checkHalves()
		}
		result := c.up()
		switch {
		case result.UpToDate.Len() == 0:
			length = max(length, 2*moment)
		case result.Done.Len() == 0:
			length = moment
		default:
			inTheMiddle++
		}
		if succeeded && result.Done.Len() > 0 {
			t.Errorf("kill %d of %s: the run had ended with success, and yet shards %s were not done", kill, what, result.Done)
		}
		t.Logf("kill %d of %s after %v; taken up %s: %d shards were done, %d were left, steps %v",
			kill, what, moment.Round(time.Millisecond), taken, result.UpToDate.Len(), result.Done.Len(), result.Steps)
		c.check()
		if t.Failed() {
			t.Fatalf("stopped at kill %d", kill)
		}
	}
	t.Logf("%d kills found some shards done and others not", inTheMiddle)
}

// killUp starts kiloshard migrate up and kills it after a while, with a host or, if that is negative, without
// one, which is back when killUp returns. It reports whether the run had ended with success by then.
func (c *killCluster) killUp(after time.Duration, host int) (succeeded bool) {
	c.t.Helper()
	cmd := c.command("migrate", "up")
	cmd.Stdout, cmd.Stderr = nil, nil
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-time.After(after):
	case <-c.t.Context().Done():
	}
	var wg sync.WaitGroup
	if host >= 0 {
		wg.Go(func() {
			if err := c.servers[host].Kill(c.t.Context()); err != nil {
				c.t.Error(err)
			}
		})
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Error(err)
	}
	err := cmd.Wait()
	wg.Wait()
	if host >= 0 {
		if err := c.servers[host].Restart(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
	}
	return err == nil
}

var killMigrations = []struct{ name, sql string }{
	{"001_users.sql", "create table log (file int);\ncreate table users (id bigint primary key default next_id(), name text not null);\n"},
	{"002_photos.sql", "create table photos (id bigint primary key default next_id(), owner bigint not null references users (id), title text);\n"},
	{"003_likes.sql", "create table likes (photo bigint references photos, who bigint references users, primary key (photo, who));\ncreate index likes_of on likes (who);\n"},
	{"004_wide.sql", "alter table photos add column taken timestamp with time zone not null default now(), add check (title <> '');\ncreate unique index photos_title on photos (owner, lower(title));\n"},
	{"005_id.sql", "alter table likes alter column who set not null, add column kind smallint not null default 1;\nalter table users add constraint users_name unique (name);\n"},
}

// killFile returns a migration that also enters itself into the shard's log.
func killFile(i int) (name, sql string) {
	m := killMigrations[i]
	return m.name, m.sql + fmt.Sprintf("insert into log values (%d);\n", i+1)
}
