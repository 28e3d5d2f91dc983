package prove_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

var (
	// full asks for all faults at full strength.
	full = os.Getenv("PROVE_FULL") == "1"
	// strict makes what is missing on this machine a failure.
	strict = full || os.Getenv("CI") == "true"
	// chosen is the subject of the suite.
	chosen = subject(os.Getenv("PROVE"))
)

func TestMain(m *testing.M) {
	localpg.IgnoreEnvironment()
	switch chosen {
	case "":
		chosen = kiloshard
	case kiloshard, published, bare:
	default:
		fmt.Fprintf(os.Stderr, "PROVE=%s: expected %s, %s or %s\n", chosen, kiloshard, published, bare)
		os.Exit(2)
	}
	goleak.VerifyTestMain(leak.Main{M: m})
}

// form returns the figure for the form that is run.
func form[T any](short, long T) T {
	if full {
		return long
	}
	return short
}

// missing ends a test because something is missing: it skips, or fails in strict mode.
func missing(t *testing.T, what string) {
	t.Helper()
	if strict {
		t.Fatal(what)
	}
	t.Skip(what)
}

// loadFor lets the load go on for a while.
func loadFor(t *testing.T, length time.Duration) {
	t.Helper()
	select {
	case <-time.After(length):
	case <-t.Context().Done():
	}
}
