package prove_test

import (
	"os"
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(processKind); kind != "" {
		os.Exit(runProcess(kind))
	}
	os.Exit(leak.Check(shardtest.Run(m)))
}
