package prove_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// fault is what befalls a move.
type fault struct {
	name   string
	at     []string                          // the points at which it strikes, in moves of their own
	strike func(c *cluster, from, to string) // nil kills the mover
	mend   func(c *cluster, from, to string)
	until  string // it is mended once this happens; else when the mover has given up
	after  func(c *cluster, home string)
	seen   bool // services need what it strikes
}

// unseen are faults that services notice nothing of.
var unseen = []fault{
	{
		name: "mover and source cut off", at: []string{"cutover: marked", "copy: copying", "copy: slot made", "copy: copied", "cutover: locked", "cutover: carried", "cutover: released", "fenced: switched", "switched: begun"},
		strike: func(c *cluster, from, _ string) { c.links["mover "+from].cut() },
		mend:   func(c *cluster, from, _ string) { c.links["mover "+from].heal() },
	},
	{
		name: "mover and target cut off", at: []string{"cutover: locked", "schema: begun", "copy: copying", "copy: committing", "cutover: marked", "cutover: released", "fenced: switched", "switched: begun"},
		strike: func(c *cluster, _, to string) { c.links["mover "+to].cut() },
		mend:   func(c *cluster, _, to string) { c.links["mover "+to].heal() },
	},
	{
		name: "mover and store cut off", at: []string{"fenced: begun", "cutover: carried", "copy: copied", "fenced: switched"},
		strike: func(c *cluster, _, _ string) { c.links["mover store"].cut() },
		mend:   func(c *cluster, _, _ string) { c.links["mover store"].heal() },
		until:  "the store: ",
	},
	{
		name: "hosts cut off in the copy", at: []string{"copy: copied", "copy: copying"},
		strike: func(c *cluster, from, to string) { c.links[to+" "+from].cut() },
		mend:   func(c *cluster, from, to string) { c.links[to+" "+from].heal() },
		until:  "waits for ",
	},
	{
		name: "hosts cut off at the cutover", at: []string{"cutover: locked", "cutover: begun"},
		strike: func(c *cluster, from, to string) { c.links[to+" "+from].cut() },
		mend:   func(c *cluster, from, to string) { c.links[to+" "+from].heal() },
		until:  "tries again",
	},
	{
		name: "hosts cut off after the cutover", at: []string{"switched: begun", "fenced: begun"},
		strike: func(c *cluster, from, to string) { c.links[to+" "+from].cut() },
		mend:   func(c *cluster, from, to string) { c.links[to+" "+from].heal() },
	},
	{
		name: "hosts silent at the cutover", at: []string{"cutover: locked", "cutover: begun"},
		strike: func(c *cluster, from, to string) { c.links[to+" "+from].hush() },
		mend:   func(c *cluster, from, to string) { c.links[to+" "+from].heal() },
		until:  "tries again",
	},
	{
		name: "migrate up", at: []string{"copy: copied", "schema: made", "cutover: released", "fenced: switched"},
		strike: func(c *cluster, _, _ string) { c.migrateUp(false) },
		after:  func(c *cluster, _ string) { c.migrateUp(true) },
	},
	{
		name: "a transaction left open", at: []string{"copy: copied"},
		strike: func(c *cluster, from, _ string) { c.leaveOpen(from) },
		mend:   func(c *cluster, _, _ string) { c.holder.end() },
		until:  "waits for a transaction",
	},
	{
		name: "another mover", at: []string{"copy: copied"},
		strike: func(c *cluster, from, to string) {
			cfg := c.config(from, to)
			cfg.Events = nil
			if _, err := move.Run(c.t.Context(), cfg); !errors.Is(err, move.ErrBusy) {
				c.t.Errorf("the other mover: %v", err)
			}
		},
	},
}

// seen are faults of what services need.
var seen = []fault{
	{
		seen: true, name: "store killed", at: []string{"fenced: begun", "cutover: carried", "copy: copied", "fenced: switched"},
		strike: func(c *cluster, _, _ string) { c.kill("store") },
		mend:   func(c *cluster, _, _ string) { c.restart("store") },
		until:  "the store: ",
	},
	{
		seen: true, name: "source killed", at: []string{"cutover: carried", "schema: made", "copy: copying", "copy: copied", "cutover: locked", "cutover: released", "fenced: switched", "switched: unsubscribed"},
		strike: func(c *cluster, from, _ string) { c.kill(from) },
		mend:   func(c *cluster, from, _ string) { c.restart(from) },
	},
	{
		seen: true, name: "target killed", at: []string{"copy: copying", "copy: committing", "schema: begun", "cutover: locked", "cutover: carried", "cutover: released", "fenced: switched", "switched: begun"},
		strike: func(c *cluster, _, to string) { c.kill(to) },
		mend:   func(c *cluster, _, to string) { c.restart(to) },
	},
	{
		seen: true, name: "target restarted", at: []string{"copy: copying"},
		strike: func(c *cluster, _, to string) { c.restart(to) },
	},
}

// A mover is killed at each point of a move, and then whatever else may befall a move does so, while services write. A resume
// or an abort ends it well. Unless the test is full, a mover dies at four points, each other fault strikes at its
// first point, and each is either resumed or taken back.
func TestFaults(t *testing.T) {
	t.Parallel()
	c := start(t, map[string]localpg.Config{})
	points := c.points(moves)
	if len(points) < 15 {
		t.Fatalf("%d points of a move: %s", len(points), points)
	}
	c.clean()
	w := c.callers()
	var faults []fault
	for _, at := range points {
		if pgtest.Full() || slices.Contains([]string{"copy: copying", "cutover: carried", "cutover: released", "fenced: switched"}, at) {
			faults = append(faults, fault{name: "mover killed", at: []string{at}})
		}
	}
	faults = slices.Concat(faults, unseen, seen)
	back := true
	for _, f := range faults {
		for i, at := range f.at {
			if i > 0 && !pgtest.Full() {
				break
			}
			for range 2 {
				// Until the end: sessions may be found dead at any time afterwards.
				w.mayFail.Store(w.mayFail.Load() || f.seen)
				ok := t.Run(fmt.Sprintf("%s, %s, back %t", f.name, at, back), func(t *testing.T) { c.on(t).suffer(w, f, at, back) })
				if !ok || t.Failed() {
					return
				}
				back = !back
				if !pgtest.Full() {
					break
				}
			}
		}
	}
}

// suffer moves shard 1 to the other host, and has something befall the move. Then the move is resumed, or taken back.
func (c *cluster) suffer(w *crowd, f fault, at string, back bool) {
	c.t.Helper()
	from, to := c.home()
	home := to
	if f.strike == nil {
		c.killedMover(moves, from, to, at)
		home = c.endWell(from, to, back)
	} else if err := c.struckMove(f, from, to, at); err != nil {
		c.t.Log("the mover: ", err)
		home = c.endWell(from, to, back)
	}
	if now, _ := c.home(); now != home {
		c.t.Errorf("the map has the shard on %s, expected %s", now, home)
	}
	w.some()
	c.whole(home)
	w.check(home)
	c.clean()
	if f.after != nil {
		f.after(c, home)
	}
}

// struckMove moves shard 1 while something befalls the move, and puts that right again.
func (c *cluster) struckMove(f fault, from, to, at string) error {
	c.t.Helper()
	cfg := c.config(from, to)
	struck, mended := false, f.mend == nil
	mend := func() {
		if !mended {
			mended = true
			f.mend(c, from, to)
		}
	}
	tell := cfg.Events
	cfg.Events = func(e progress.Event) {
		tell(e)
		switch {
		case !struck && point(e) == at:
			struck = true
			f.strike(c, from, to)
		case struck && f.until != "" && strings.Contains(e.What, f.until):
			mend()
		}
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), waitTime)
	defer cancel()
	_, err := move.Run(ctx, cfg)
	if !struck {
		c.t.Fatalf("the move did not come to %q: %v", at, err)
	}
	mend()
	return err
}

// endWell resumes a move, or takes it back, and returns where the shard is then. One that has switched the map cannot be
// taken back: this is said, and a resume ends it.
func (c *cluster) endWell(from, to string, back bool) string {
	c.t.Helper()
	if back {
		switched, _ := c.home()
		_, err := move.Abort(c.t.Context(), c.config(from, to).Config)
		switch {
		case err == nil && switched == from:
			return from
		case err == nil:
			c.t.Error("a move was taken back whose target served already")
		case switched == from:
			c.t.Fatal(err)
		}
	}
	if _, err := move.Resume(c.t.Context(), c.config(from, to).Config); err != nil {
		c.t.Fatal(err)
	}
	return to
}
