package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func TestCanary(t *testing.T) {
	t.Parallel()
	b := setup(t, 8, 2, "001_users.sql", users)
	var canary shards.Set
	b.cfg.Canary = 3
	b.cfg.Check = func(_ context.Context, done shards.Set) error {
		canary = done
		return errors.New("the pages are slow")
	}
	var phases []string
	b.cfg.Events = func(e migrate.Event) {
		if e.Kind == migrate.PhaseBegan {
			phases = append(phases, e.Phase)
		}
	}
	_, partial := b.upFails()
	equal(t, "the canary", canary.String(), "0-1,4")
	equal(t, "done", partial.Done.String(), "0-1,4")
	equal(t, "not attempted", partial.NotAttempted.String(), "2-3,5-7")
	if !errors.Is(partial, migrate.ErrCanary) || !strings.Contains(partial.Error(), "the pages are slow") {
		t.Errorf("got %v", partial)
	}
	for _, size := range []int{3, 2, 3} { // the canary stays, and a smaller one is a part of it
		b.cfg.Canary = size
		_, partial = b.upFails()
		equal(t, "the canary after a failed check", canary.String(), map[int]string{3: "0-1,4", 2: "0,4"}[size])
		equal(t, "done after a failed check", partial.Done.String(), "")
	}
	b.cfg.Check = func(context.Context, shards.Set) error { return nil }
	phases = nil
	equal(t, "done by the second run", b.up().Done.String(), "2-3,5-7")
	equal(t, "phases", fmt.Sprintf("%q", phases), `["canary" "all hosts"]`)
}

// TestCanaryThatFails stops without asking.
func TestCanaryThatFails(t *testing.T) {
	t.Parallel()
	b := setup(t, 8, 2, "001_users.sql", "select 1/(4-{{.shard}})")
	b.cfg.Canary = 2
	b.cfg.Check = func(context.Context, shards.Set) error { t.Error("it was asked"); return nil }
	_, partial := b.upFails()
	equal(t, "done", partial.Done.String(), "0")
	equal(t, "not attempted", partial.NotAttempted.String(), "1-3,5-7")
	_, partial = b.upFails() // the shard that failed is in the next one too
	equal(t, "not attempted", partial.NotAttempted.String(), "1-3,5-7")
}

func TestWaves(t *testing.T) {
	t.Parallel()
	b := setup(t, 9, 3, "001_users.sql", users)
	b.cfg.Wave = 2
	var events []string
	b.cfg.Events = func(e migrate.Event) {
		switch e.Kind {
		case migrate.PhaseBegan:
			events = append(events, e.Phase)
		case migrate.ShardDone:
			events = append(events, e.Host)
		}
	}
	b.up()
	equal(t, "phases", events[0]+", "+events[7], "hosts pg-a pg-b, hosts pg-c")
	if slices.Contains(events[:7], "pg-c") || len(events) != 11 {
		t.Errorf("got %q", events)
	}
}

func TestMaxFailures(t *testing.T) {
	t.Parallel()
	b := setup(t, 40, 1, "001_users.sql", "select 1/({{.shard}}%2)")
	b.cfg.PerHost, b.cfg.MaxFailures = 1, 3
	_, partial := b.upFails()
	if text := partial.Error(); strings.Contains(text, "context canceled: too many") {
		t.Errorf("got %s", text)
	}
	if !errors.Is(partial, migrate.ErrTooManyFailures) || len(partial.Failed) != 4 || partial.NotAttempted.Len() != 40-7 {
		t.Errorf("%d failed, %d not attempted: %v", len(partial.Failed), partial.NotAttempted.Len(), partial)
	}
}

// TestRetries has a session hold a lock until the run has met it.
func TestRetries(t *testing.T) {
	t.Parallel()
	b := setup(t, 3, 1, "001_users.sql", users, "002_more.sql", "alter table users add column more int")
	b.cfg.To = 1
	b.up()
	b.cfg.To = 0
	b.cfg.LockTimeout, b.cfg.Retries = 500*time.Millisecond, 100
	holder := b.connect(b.m.Hosts()[0])
	exec := func(sql string) {
		if _, err := holder.Exec(t.Context(), sql); err != nil {
			t.Error(err)
		}
	}
	exec("begin; select count(*) from shard_00001.users")
	var retries atomic.Int32
	b.cfg.Events = func(e migrate.Event) {
		if e.Kind != migrate.ShardRetry || retries.Add(1) != 2 {
			return
		}
		if e.Shard != 1 || !strings.Contains(e.Blockers, "idle in transaction") || !strings.Contains(e.Blockers, "shard_00001.users") {
			t.Errorf("shard %d waits for %q", e.Shard, e.Blockers)
		}
		exec("commit")
	}
	b.up()
	if n := retries.Load(); n < 2 {
		t.Errorf("%d retries", n)
	}
	exec("begin; select count(*) from shard_00001.users")
	b.cfg.Files = files("001_users.sql", users, "002_more.sql", "alter table users add column more int", "003_less.sql", "alter table users drop column more")
	b.cfg.Retries, b.cfg.Events = -1, nil
	_, partial := b.upFails()
	if len(partial.Failed) != 1 || !strings.Contains(partial.Failed[0].Error(), "locks there are held by process") {
		t.Errorf("got %v", partial)
	}
}

func TestStatementTimeout(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_slow.sql", "select pg_sleep(60)")
	b.cfg.StatementTimeout = time.Second
	_, partial := b.upFails()
	if len(partial.Failed) != 2 || !strings.Contains(partial.Error(), "57014") {
		t.Errorf("got %v", partial)
	}
}
