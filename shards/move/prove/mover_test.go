package prove_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// The variables that make this test binary a mover which kills itself when something happens.
const (
	moverDies  = "KILOSHARD_TEST_MOVER_DIES"
	moverDoes  = "KILOSHARD_TEST_MOVER_DOES"
	moverTo    = "KILOSHARD_TEST_MOVER_TO"
	moverLogin = "KILOSHARD_TEST_MOVER_LOGIN"
	moverStore = "KILOSHARD_TEST_MOVER_STORE"
)

// point names what happens in a move: the step, and the kind of event.
func point(e progress.Event) string { return string(e.Step) + ": " + string(e.Kind) }

// The ways of a mover of shard 1.
const (
	moves       = "moves"
	promotes    = "promotes" // with shard 3
	movesToGo   = "moves with a way back"
	rollsBack   = "rolls back"
	wayBackTime = time.Hour
)

// do does what a mover of some way does.
func do(ctx context.Context, way string, cfg move.RunConfig) error {
	var err error
	switch way {
	case rollsBack:
		_, err = move.Rollback(ctx, cfg.Config)
	case promotes:
		_, err = move.Promote(ctx, move.PromoteConfig{Map: cfg.Map, Store: cfg.Store, Shards: shards.SetOf(1, 3), To: cfg.To, Events: cfg.Events})
	case movesToGo:
		cfg.RollbackFor = wayBackTime
		fallthrough
	default:
		_, err = move.Run(ctx, cfg)
	}
	return err
}

// mover does what it is to do with shard 1, and does not come to its end.
func mover() {
	ctx := context.Background()
	err := func() error {
		store, err := openStore(ctx, os.Getenv(moverStore), os.LookupEnv)
		if err != nil {
			return err
		}
		now, err := store.Load(ctx)
		if err != nil {
			return err
		}
		return do(ctx, os.Getenv(moverDoes), move.RunConfig{To: os.Getenv(moverTo), Config: move.Config{
			Map: now.Map, Store: store, Shards: shards.SetOf(1), Login: os.Getenv(moverLogin), LoginWithPassword: true,
			Events: func(e progress.Event) {
				if point(e) == os.Getenv(moverDies) {
					self, _ := os.FindProcess(os.Getpid())
					_ = self.Kill()
					select {} // it ends at any moment
				}
			},
		}})
	}()
	fmt.Fprintln(os.Stderr, "the mover was not killed:", err)
	os.Exit(1)
}

// killedMover has a process do something with shard 1 that is killed at a point.
func (c *cluster) killedMover(way, from, to, at string) {
	c.t.Helper()
	var output bytes.Buffer
	cmd := exec.CommandContext(c.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), moverDies+"="+at, moverDoes+"="+way, moverTo+"="+to, moverLogin+"="+c.config(from, to).Login, moverStore+"="+c.throughLinks("store"),
		variable("pg-a")+"="+c.throughLinks("pg-a"), variable("pg-b")+"="+c.throughLinks("pg-b"))
	cmd.Stderr = &output
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.String() != "signal: killed" {
		c.t.Fatalf("at %q: %v: %s", at, err, output.String())
	}
	underWay := func(m ledger.Move) bool { return m.Outcome == ledger.UnderWay }
	if moves, err := move.Status(c.t.Context(), c.load(c.direct)); err != nil || !slices.ContainsFunc(moves, underWay) {
		c.t.Errorf("the ledger says %v, %v", moves, err)
	}
}

// points does something with shard 1 and returns all that happens, in its order.
func (c *cluster) points(way string) []string {
	c.t.Helper()
	var all []string
	cfg := c.config(c.home())
	cfg.Events = func(e progress.Event) {
		if p := point(e); e.Step != ledger.Finished && e.Bytes == 0 && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	if err := do(c.t.Context(), way, cfg); err != nil {
		c.t.Fatal(err)
	}
	return all
}
