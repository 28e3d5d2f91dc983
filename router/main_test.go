package router_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

// server is where all tests have their databases.
var server *localpg.Server

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	config := shardtest.ServerConfig()
	config.Settings = maps.Clone(config.Settings)
	if config.Settings == nil {
		config.Settings = map[string]string{}
	}
	config.Settings["max_prepared_transactions"] = "10"
	server, err = localpg.Start(ctx, config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := errors.Join(stopReplicated(ctx), server.Stop(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return leak.Check(code)
}
