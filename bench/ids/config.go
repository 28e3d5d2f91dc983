package ids

import (
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Config configures [Run].
type Config struct {
	Hosts    []shards.Host // three empty databases of one server: for the shards, and for two ticket servers
	Sessions []int         // numbers of concurrent sessions to measure. Defaults to 1 and 32
	Duration time.Duration // total time of making IDs. Defaults to 24 s
	Rows     int           // of each table that is filled; negative for no tables. Defaults to 1,000,000
	Progress func(what string)
}

const defaultDuration = 24 * time.Second

func (cfg Config) withDefaults() Config {
	if len(cfg.Sessions) == 0 {
		cfg.Sessions = []int{1, 32}
	}
	if cfg.Duration <= 0 {
		cfg.Duration = defaultDuration
	}
	if cfg.Rows == 0 {
		cfg.Rows = 1_000_000
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	return cfg
}
