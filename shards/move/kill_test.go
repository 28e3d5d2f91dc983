package move_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move"
)

// The variables that make this test binary a mover which kills itself when something happens.
const (
	killAt    = "KILOSHARD_TEST_KILL_AT"
	killStore = "KILOSHARD_TEST_KILL_STORE"
	killTo    = "KILOSHARD_TEST_KILL_TO"
)

// point names what happens in a move, without what differs from one to the next.
func point(e move.Event) string {
	what, _, _ := strings.Cut(e.What, " after")
	return string(e.Step) + ": " + what
}

// mover moves shard 1 and does not come to its end.
func mover() {
	ctx := context.Background()
	store, err := mapstore.Open(ctx, shards.Config{Cluster: "test"}, mapstore.Options{Path: os.Getenv(killStore), Lookup: os.LookupEnv})
	if err == nil {
		var now mapstore.Entry
		if now, err = store.Load(ctx); err == nil {
			_, err = move.Run(ctx, move.Config{
				Map: now.Map, Store: store, Shards: shards.SetOf(1), To: os.Getenv(killTo), LoginWithPassword: true,
				Events: func(e move.Event) {
					if point(e) == os.Getenv(killAt) {
						self, _ := os.FindProcess(os.Getpid())
						_ = self.Kill()
						select {} // it ends at any moment
					}
				},
			})
		}
	}
	fmt.Fprintln(os.Stderr, "the mover was not killed:", err)
	os.Exit(1)
}

// killMover moves shard 1 by a process that is killed at a point.
func (b *bundle) killMover(to, at string) {
	b.t.Helper()
	var output bytes.Buffer
	cmd := exec.CommandContext(b.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killAt+"="+at, killStore+"="+b.path, killTo+"="+to,
		variable(b.m.Hosts()[0])+"="+b.m.Hosts()[0].ConnString(), variable(b.m.Hosts()[1])+"="+b.m.Hosts()[1].ConnString())
	cmd.Stderr = &output
	err := cmd.Run()
	if cmd.ProcessState != nil && cmd.ProcessState.String() == "signal: killed" {
		return
	}
	b.t.Fatalf("at %q: %v: %s", at, err, output.String())
}

// points returns all that happens in a move, in its order.
func (b *bundle) points() []string {
	b.t.Helper()
	var all []string
	seen := map[string]bool{}
	cfg := b.cfg
	cfg.Events = func(e move.Event) {
		if p := point(e); !seen[p] && e.Step != move.Finished {
			seen[p] = true
			all = append(all, p)
		}
	}
	if _, err := move.Run(b.t.Context(), cfg); err != nil {
		b.t.Fatal(err)
	}
	return all
}

// skipped are points at which the hosts and the store are as at another one; of those where an abort does the same as at the
// step's beginning only some are left.
var skipped = map[string]*regexp.Regexp{
	"resume": regexp.MustCompile(`copying|copied|caught up|published|unsubscribed`),
	"abort":  regexp.MustCompile(`: (copying|copied|caught up|published|marked|carried|released|unsubscribed|unpublished|made)$`),
}

// A mover is killed at each point of a move, while services write. Then the move is resumed, or aborted: one host serves,
// all rows are there once, and nothing else is left.
func TestKilledMover(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(context.Context, move.Config) (move.Report, error){"resume": move.Resume, "abort": move.Abort} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(0, fill)
			b.cfg.Events = nil
			points := b.points()
			if len(points) < 15 {
				t.Fatalf("%d points of a move: %s", len(points), points)
			}
			c := b.crowd(t, returning, reading(`select count(*) from events`))
			for _, at := range points {
				if skipped[name].MatchString(at) {
					continue
				}
				home := b.load().Host(1).Name
				to := other(home)
				b.killMover(to, at)
				if moves, err := move.Status(t.Context(), b.m); err != nil || moves[len(moves)-1].Outcome != move.UnderWay {
					t.Errorf("at %q: the ledger says %v, %v", at, moves[len(moves)-1], err)
				}
				b.cfg.Map = b.load()
				_, err := after(t.Context(), b.cfg)
				if name == "abort" && strings.HasPrefix(at, "switched: ") || at == "fenced: switched" && name == "abort" {
					if err == nil {
						t.Errorf("at %q: aborted, although the map was switched", at)
					}
					_, err = move.Resume(t.Context(), b.cfg)
					home = to
				}
				if err != nil {
					t.Fatalf("at %q: %v", at, err)
				}
				if name == "resume" {
					home = to
				}
				b.equal("at "+at+": the host", b.load().Host(1).Name, home)
				b.served(home, at)
				b.clean()
				c.some("calls after " + at)
				if t.Failed() {
					t.Fatalf("at %q", at)
				}
			}
			c.end(b, b.load().HostIndex(1))
		})
	}
}

func other(host string) string {
	if host == "pg-a" {
		return "pg-b"
	}
	return "pg-a"
}

// served checks that shard 1 takes writes on one host and none on the other.
func (b *bundle) served(home, when string) {
	b.t.Helper()
	for i, h := range b.m.Hosts() {
		err := b.try(i, `begin; insert into shard_00001.photos (title) values ('served'); rollback`)
		if (err == nil) != (h.Name == home) {
			b.t.Errorf("at %s: a write on %s, while the shard is on %s: %v", when, h.Name, home, err)
		}
	}
}
