package pgtest

import (
	"os"
	"testing"
)

// Full reports whether tests run in full, as make prove has them: every fault at every point, and long loads. Else each kind
// of fault is tried once.
func Full() bool { return os.Getenv("PROVE_FULL") == "1" }

// Long skips a test that only make prove runs. The table faults.md names its short form.
func Long(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("takes minutes: make prove runs it")
	}
}
