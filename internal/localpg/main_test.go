//go:build unix

package localpg_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

// roleVariable names what a copy of this test binary that a test started is to do, instead of running the tests.
const roleVariable = "LOCALPG_TEST_ROLE"

func TestMain(m *testing.M) {
	localpg.IgnoreEnvironment()
	name := os.Getenv(roleVariable)
	if name == "" {
		goleak.VerifyTestMain(leak.Main{M: m})
		return
	}
	role, ok := roles[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such role:", name)
		os.Exit(2)
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
