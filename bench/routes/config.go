package routes

import (
	"context"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// connsPerHost is how many connections to a host each side has.
const connsPerHost = 16

// Config configures [Run].
type Config struct {
	// NewHosts makes two hosts with nothing in them, each time on the same two servers.
	NewHosts func(ctx context.Context) ([]shards.Host, error)

	Only       []string      // the parts to run, of those that [Parts] returns. Defaults to all
	Turn       time.Duration // of one side, in every round. Defaults to 1 s
	Rounds     int           // in each of which all sides take a turn. Defaults to 5
	Goroutines []int         // of the part many, one after the other. Defaults to 16, 64 and 256
	Crowd      int           // goroutines of the part starvation. Defaults to 8192
	Swaps      int           // map changes of the part swaps, one every 2 ms of its turns. Defaults to 10,000

	// Shards are how many shards of one host the part schemas has, 16 or more, one after the other. No other part has more
	// than the most of them. Defaults to 1024 and 4096.
	Shards []int

	Progress func(what string)
}

func (cfg Config) withDefaults() Config {
	if cfg.Turn <= 0 {
		cfg.Turn = time.Second
	}
	if cfg.Rounds <= 0 {
		cfg.Rounds = 5
	}
	if len(cfg.Goroutines) == 0 {
		cfg.Goroutines = []int{16, 64, 256}
	}
	if len(cfg.Shards) == 0 {
		cfg.Shards = []int{1024, 4096}
	}
	if cfg.Crowd <= 0 {
		cfg.Crowd = 8192
	}
	if cfg.Swaps <= 0 {
		cfg.Swaps = 10_000
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	return cfg
}

// most returns n, limited to the largest of Config.Shards.
func (cfg Config) most(n int) int { return min(n, slices.Max(cfg.Shards)) }
