package prove_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// The target of a move is gone for good: the move is taken back without it, and leaves nothing on the source. Should the target come back,
// what the move has made there is dropped.
func TestTargetGone(t *testing.T) {
	t.Parallel()
	c := start(t, map[string]localpg.Config{})
	c.fill("pg-a")
	points := []string{"copy: copying", "cutover: released"}
	if pgtest.Full() {
		points = append(points, "schema: begun")
	}
	for _, at := range points {
		c.killedMover(moves, "pg-a", "pg-b", at)
		if _, err := move.AbortWithoutTarget(t.Context(), c.config("pg-a", "pg-b").Config); err == nil || !strings.Contains(err.Error(), "pg-b answers: expected move abort") {
			t.Errorf("%s: of a target that answers: got %v", at, err)
		}
		c.kill("pg-b")
		cfg := c.config("pg-a", "pg-b")
		if _, err := move.Abort(t.Context(), cfg.Config); err == nil {
			t.Errorf("%s: an abort has needed no target", at)
		}
		report, err := move.AbortWithoutTarget(t.Context(), cfg.Config)
		if err != nil || report.Done.String() != "1" {
			t.Fatalf("%s: %v, %v", at, report, err)
		}
		c.exec("pg-a", `begin; insert into shard_00001.photos (title) values ('served'); rollback`)
		if found := c.text("pg-a", `select coalesce(string_agg(what, ', '), '') from (`+left+`) l (what)`); found != "" {
			t.Errorf("%s: pg-a has %s", at, found)
		}
		c.restart("pg-b")
		cleaned, err := move.Clean(t.Context(), c.load(c.direct), shards.Set{})
		if err != nil || !slices.Contains(cleaned.Removed, "pg-b: unfinished schema shard_00001") {
			t.Errorf("%s: cleaned %v, %v", at, cleaned, err)
		}
		if there := c.text("pg-b", `select to_regnamespace('shard_00001') is not null`); there != "f" {
			t.Errorf("%s: the schema is left on pg-b", at)
		}
		c.whole("pg-a")
	}

	// Once the map has the shard on the target, that must come back.
	c.killedMover(moves, "pg-a", "pg-b", "fenced: switched")
	c.kill("pg-b")
	if _, err := move.AbortWithoutTarget(t.Context(), c.config("pg-a", "pg-b").Config); err == nil || !strings.Contains(err.Error(), "puts shard 1 on pg-b already") {
		t.Errorf("of a target that serves: got %v", err)
	}
	c.restart("pg-b")
	if _, err := move.Resume(t.Context(), c.config("pg-a", "pg-b").Config); err != nil {
		t.Fatal(err)
	}
	c.whole("pg-b")
}

// A prepared transaction that has no session any more is named as what the cutover waits for.
func TestPreparedTransaction(t *testing.T) {
	t.Parallel()
	c := start(t, map[string]localpg.Config{"pg-a": {Settings: map[string]string{"max_prepared_transactions": "5"}}})
	cfg := c.config("pg-a", "pg-b")
	said := false
	cfg.Events = func(e progress.Event) {
		switch p := point(e); {
		case p == "copy: copied":
			c.exec("pg-a", `begin; insert into shard_00001.events (what) values ('prepared'); prepare transaction 'left over'`)
		case e.What == "waits for prepared transaction 'left over'" && !said:
			said = true
			c.exec("pg-a", `commit prepared 'left over'`)
		}
	}
	cfg.RetryLimit = waitTime
	if _, err := move.Run(t.Context(), cfg); err != nil || !said {
		t.Errorf("got %v, said %t", err, said)
	}
	c.whole("pg-b")
}
