package mapstore_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

// server holds the control databases of all tests but those that kill theirs.
var server *localpg.Server

func TestMain(m *testing.M) {
	if path := os.Getenv(swapperVariable); path != "" {
		if err := swapForever(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if role := os.Getenv(roleVariable); role != "" {
		return play(role)
	}
	localpg.IgnoreEnvironment()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	if server, err = localpg.Start(ctx, shardtest.ServerConfig()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := server.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return leak.Check(code)
}
