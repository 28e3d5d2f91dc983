package rows_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// The variables of the process that is killed: what it does, in which database, and the kind of event at which it kills itself, with the number of
// the event among those of its kind.
const (
	killedWork = "KILOSHARD_TEST_ADOPT_WORK"
	killedDSN  = "KILOSHARD_TEST_ADOPT_DSN"
	killedAt   = "KILOSHARD_TEST_ADOPT_KILL_AT"
)

// dropping is the kind of event before old tables are dropped.
const dropping rows.Kind = "dropping"

func TestMain(m *testing.M) {
	if work := os.Getenv(killedWork); work != "" {
		os.Exit(workUntilKilled(work))
	}
	os.Exit(shardtest.Run(m))
}

// mapOf returns a map of shards on one host.
func mapOf(host shards.Host, count int) (*shards.Map, error) {
	c := shardtest.MapConfig(count, []shards.Host{host})
	c.SearchPath, c.OldIDsBelow = []string{"public"}, 1<<40
	return c.Map()
}

// workUntilKilled is the process that is killed.
func workUntilKilled(what string) int {
	kind, number, _ := strings.Cut(os.Getenv(killedAt), " ")
	m, err := mapOf(shards.Host{Name: "pg-a", DSN: os.Getenv(killedDSN)}, 4)
	if err != nil {
		panic(err)
	}
	events := 0
	report := func(e rows.Event) {
		if e.Kind == rows.Kind(kind) {
			events++
		}
		fmt.Println(e.Kind, e.Shards, e.Table)
		if strconv.Itoa(events) == number {
			killMyself()
		}
	}
	drop := func([]string) error {
		report(rows.Event{Kind: dropping})
		return nil
	}
	if err := work(context.Background(), what, rows.Config{Map: m, Batch: 200, Group: 2, Parallel: 2, Report: report, Drop: drop}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// killMyself ends the process as kill -9 does.
func killMyself() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// killed runs work in a process of its own that kills itself at an event, or is killed after a while, and reports whether it was.
func (b *bundle) killed(work, at string, after time.Duration) bool {
	b.t.Helper()
	ctx := b.t.Context()
	if after > 0 {
		limited, cancel := context.WithTimeout(ctx, after)
		defer cancel()
		ctx = limited
	}
	cmd := b.worker(ctx, work, at)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if code := cmd.ProcessState.ExitCode(); code != -1 {
		b.t.Fatalf("%s ended with code %d: %s", work, code, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	b.t.Logf("%s killed after %q", work, lines[len(lines)-1])
	b.awaitSessions()
	return true
}

// worker returns a command that works in a process of its own.
func (b *bundle) worker(ctx context.Context, work, at string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // this test
	cmd.Env = append(os.Environ(), killedWork+"="+work, killedDSN+"="+b.host.DSN, killedAt+"="+at)
	return cmd
}

// awaitSessions returns when the killed process has no session any more.
func (b *bundle) awaitSessions() {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if b.run("select count(*) from pg_stat_activity where datname = current_database() and application_name = '" + ledger.Application + "'")[0] == "0" {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatal("the killed process still has sessions")
		}
	}
}

// TestKilled kills the move of rows between its steps and within them, and the way back as well, while clients write. Another run goes on, there or back,
// and at the end no row is lost, doubled, or in a wrong shard, and the structure of the old tables is as it was. make prove kills at more events.
func TestKilled(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	before := b.dump()
	all := b.write(3)
	back := func() {
		t.Helper()
		if _, err := rows.Back(t.Context(), b.config()); err != nil {
			t.Fatal(err)
		}
		if after := b.dump(); after != before {
			t.Fatalf("the structure has changed: %s", difference(before, after))
		}
	}
	numbers := []string{"1"}
	if pgtest.Full() {
		numbers = []string{"1", "2", "4", "8"}
	}
	for _, kind := range []rows.Kind{rows.Closed, rows.Made, rows.Copying, rows.Copied, rows.Compared, rows.Cutover, rows.Validated} {
		for _, number := range numbers {
			if !b.killed("tables", string(kind)+" "+number, 0) {
				t.Logf("there is no event %s %s", kind, number)
				back() // for the events of the next kind
				break
			}
			if all.failed() {
				t.Fatal("clients failed")
			}
		}
		if kind == rows.Made || kind == rows.Copied { // and from there back
			back()
		}
	}
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []rows.Kind{rows.Compared, rows.Reverted, rows.Opened} {
		if !b.killed("back", string(kind)+" 1", 0) {
			t.Errorf("there is no event %s on the way back", kind)
		}
		if kind == rows.Reverted { // and there again
			if _, err := rows.Tables(t.Context(), b.config()); err != nil {
				t.Fatal(err)
			}
		}
	}
	back()
	for _, after := range []time.Duration{300, 500, 700, 1000} { // in the middle of closing, making and copying
		if b.killed("tables", "", after*time.Millisecond) {
			back()
		}
		b.killed("tables", "", after*time.Millisecond)
	}
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	all.end()
	all.check(t)
	back()
	all.check(t)
}
