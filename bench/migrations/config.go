package migrations

import (
	"context"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Config configures [Run].
type Config struct {
	// NewHosts returns new empty hosts: the same number each time, on the same servers. It is called twice. The user in
	// their DSNs must be allowed to create databases.
	NewHosts func(ctx context.Context) ([]shards.Host, error)

	Shards  int           // over all hosts. Defaults to 4096
	Workers int           // sessions per host, in every way but the loop inside the servers. Defaults to 4
	Sample  int           // shards per host for each of the other ways, at most a quarter; with a delay half of it. Defaults to 256
	Delay   time.Duration // of the network, each way, in whole milliseconds; 0 does not measure with a delay

	Progress func(what string)
}

// Report is the result of [Run].
type Report struct {
	Server  string  `json:"server"` // version of Postgres
	Shards  int     `json:"shard_count"`
	Hosts   int     `json:"host_count"`
	Workers int     `json:"sessions_per_host"`
	Rounds  int     `json:"rounds"`
	Tables  []Table `json:"tables"` // without delay, then with it

	// PeakRSS is the memory of this process during Up, including the proxies of the delay; 0 if unknown.
	PeakRSS int64 `json:"peak_rss_bytes"`
	// SessionBytes is the private memory of the largest session of Up, near its end; 0 if unknown.
	SessionBytes int64 `json:"session_memory_bytes"`
}

// Table is all ways to migrate over one network, in seconds: medians of the rounds.
type Table struct {
	Delay     float64  `json:"delay_ms"`      // each way, as configured
	RoundTrip float64  `json:"round_trip_ms"` // measured
	Ways      []Figure `json:"ways"`
	Again     float64  `json:"nothing_to_do_seconds"` // a second Up
	Status    float64  `json:"status_seconds"`
}

// Figure is the result of one way to migrate.
type Figure struct {
	Way      string  `json:"way"`
	Measured int     `json:"shards_measured"`
	Seconds  float64 `json:"seconds"` // for all shards: scaled up if fewer were measured
	PerShard float64 `json:"ms_per_shard"`
	VsTern   float64 `json:"times_as_fast_as_tern"`
	VsFloor  float64 `json:"ratio_to_loop"` // of time: above 1 is slower than the loop inside the servers
}

func (cfg Config) withDefaults() Config {
	if cfg.Shards <= 0 {
		cfg.Shards = 4096
	}
	if cfg.Workers <= 0 {
		cfg.Workers = 4
	}
	if cfg.Sample <= 0 {
		cfg.Sample = 256
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	return cfg
}
