package prove_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/move"
)

// The mover of a rollback is killed at each point, or that of a move with a way back, while services write. A resume or an abort ends
// it well: whoever aborts a rollback can roll back again. Unless the test is full, the mover dies around the fences.
func TestRollbackFaults(t *testing.T) {
	t.Parallel()
	c := start(t, map[string]localpg.Config{})
	there := c.points(movesToGo)
	back := c.points(rollsBack)
	if len(there) < 15 || len(back) < 12 {
		t.Fatalf("points of a move: %s; of a rollback: %s", there, back)
	}
	c.clean()
	w := c.callers()
	abort := true
	few := map[string][]string{
		movesToGo: {"fenced: switched"},
		rollsBack: {"cutover: released", "fenced: reopened"},
	}
	for way, points := range map[string][]string{movesToGo: there, rollsBack: back} {
		for _, at := range points {
			for i := range 2 {
				if !pgtest.Full() && (i > 0 || !slices.Contains(few[way], at)) {
					break
				}
				ok := t.Run(fmt.Sprintf("%s, %s, abort %t", way, at, abort), func(t *testing.T) { c.on(t).sufferBack(w, way, at, abort) })
				if !ok || t.Failed() {
					return
				}
				abort = !abort
			}
		}
	}
}

// sufferBack moves shard 1 to and fro, and kills the mover once. The move or the rollback is resumed, or taken back and tried again.
func (c *cluster) sufferBack(w *crowd, way, at string, abort bool) {
	c.t.Helper()
	home, other := c.home()
	from, to := home, other
	if way == rollsBack {
		c.done(movesToGo)
		w.some()
		from, to = other, home
	}
	c.killedMover(way, from, to, at)
	switch {
	case abort && c.takenBack(from, to, at):
		w.some()
		c.served(from)
		if way == movesToGo {
			c.whole(from)
		}
		c.done(way)
	default:
		if _, err := move.Resume(c.t.Context(), c.config(from, to).Config); err != nil {
			c.t.Fatal(err)
		}
	}
	w.some()
	if way == movesToGo {
		c.served(to)
		c.done(rollsBack)
		w.some()
	}
	c.whole(home)
	w.check(home)
	c.clean()
}

// takenBack aborts a move or a rollback, unless its target takes writes already: this is said.
func (c *cluster) takenBack(from, to, at string) bool {
	c.t.Helper()
	switched, _ := c.home()
	_, err := move.Abort(c.t.Context(), c.config(from, to).Config)
	if late := switched == to || at == "fenced: reopened"; (err != nil) != late {
		c.t.Fatalf("aborted at %s: %v", at, err)
	}
	return err == nil
}

// done does something with shard 1, from where it is.
func (c *cluster) done(way string) {
	c.t.Helper()
	if err := do(c.t.Context(), way, c.config(c.home())); err != nil {
		c.t.Fatal(err)
	}
}
