package moves_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/bench/moves"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// A small shard moves in each part, in a short test only in lock and drain: no call fails, every row written exists once,
// and the report has all figures.
func TestRun(t *testing.T) {
	t.Parallel()
	only := []string{"lock", "drain"}
	if pgtest.Full() {
		only = moves.Parts()
	}
	report, err := moves.Run(t.Context(), moves.Config{
		Only:     only,
		NewHosts: func(context.Context) ([]shards.Host, error) { return shardtest.Hosts(t, 3), nil },
		Rows:     1000, Moves: 1, Callers: 1, Turn: 50 * time.Millisecond, Hold: 700 * time.Millisecond, Rate: 30e3, Shards: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Parts)+1 != len(only) {
		t.Fatalf("%d parts of %d", len(report.Parts)+1, len(only))
	}
	for _, f := range report.Parts {
		t.Logf("%+v", f)
		switch {
		case f.Failed+f.OtherFailed+f.Lost+f.Doubled+f.Falling != 0:
			t.Errorf("%s: %d and %d failed, %d lost, %d doubled, %d falling: %v", f.Part, f.Failed, f.OtherFailed, f.Lost, f.Doubled, f.Falling, f.Errors)
		case f.Written == 0 || f.Calls <= f.Written:
			t.Errorf("%s: %d calls, %d rows: the test proves nothing", f.Part, f.Calls, f.Written)
		case len(f.Stalls) != f.Moves || len(f.Fences) != f.Moves || len(f.Ratios) != f.Moves || f.OtherUsual == 0 || f.OtherBare == 0 || f.OtherDuring == 0 || f.Copied == 0:
			t.Errorf("%s: a figure is missing: %+v", f.Part, f)
		case f.Part == "rate" && f.Copied < 2: // of some 80 kB
			t.Errorf("the rate held up nothing: %v", f.Seconds)
		case f.Part == "lock" && f.Seconds[0] < 0.7:
			t.Errorf("the move did not wait for the lock: %v", f.Seconds)
		}
	}
	switch d := report.Drain; {
	case d == nil:
		t.Error("no drain")
	case d.Failed+d.Lost+d.Doubled+d.Falling != 0:
		t.Errorf("drain: %d failed, %d lost, %d doubled, %d falling: %v", d.Failed, d.Lost, d.Doubled, d.Falling, d.Errors)
	case d.Shards != 4 || d.Seconds == 0 || d.Stall == 0 || d.Usual == 0 || d.Written == 0 || d.Calls <= d.Written:
		t.Errorf("drain: a figure is missing: %+v", d)
	}
}
