package moves

import (
	"context"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Config configures [Run].
type Config struct {
	// NewHosts returns three empty hosts, on servers with wal_level logical.
	NewHosts func(ctx context.Context) ([]shards.Host, error)

	Only    []string      // the parts to run, of those that [Parts] returns. Defaults to all
	Rows    int           // of the shard, or of all shards of the part drain, each of about 100 bytes. Defaults to 1,000,000
	Moves   int           // back and forth. Defaults to 10; the parts lock and drain have one
	Callers int           // so many write to the shards that move, and as many read. Defaults to 4
	Shards  int           // that leave their host in the part drain. Defaults to 100
	Turn    time.Duration // of the load before each move, as a baseline. Defaults to 2 s
	Hold    time.Duration // for which a row is locked in the part lock. Defaults to 25 s
	Rate    int64         // bytes copied per second in the part rate. Defaults to 10 MB

	Progress func(what string)
}

// Report is the result of [Run].
type Report struct {
	Rows    int      `json:"rows"`
	Callers int      `json:"callers"` // that write; as many read
	Hold    float64  `json:"hold_seconds"`
	Rate    int64    `json:"rate"`
	Parts   []Figure `json:"parts"`
	Drain   *Drained `json:"drain,omitempty"`
}

// Figure is the result of one part. Times are in milliseconds unless noted.
type Figure struct {
	Part   string `json:"part"`
	Moves  int    `json:"moves"`
	Tables int    `json:"tables"`

	Stalls []float64 `json:"stalls_ms"` // the longest call to the shard in each move, rising
	Usual  float64   `json:"usual_ms"`  // the longest call while nothing moves, the median of as many turns
	Fences []float64 `json:"fences_ms"` // from the locks to the fence, rising

	Seconds []float64 `json:"seconds"`      // of each move, rising
	Bare    []float64 `json:"bare_seconds"` // from CREATE SUBSCRIPTION until the tables are copied, as many
	Ratios  []float64 `json:"ratios"`       // of each move to the bare copy before it, rising
	Copied  float64   `json:"copy_seconds"` // from the beginning of a move until it has copied the rows, the median
	Tried   int       `json:"tried_again"`  // cutovers that were rolled back

	Counts

	OtherFailed int     `json:"other_failed"`        // calls to other shards of both hosts
	OtherUsual  float64 `json:"other_p999_usual_ms"` // the median of the p99.9 while nothing moves
	OtherBare   float64 `json:"other_p999_bare_ms"`  // the same during the bare copies
	OtherDuring float64 `json:"other_p999_ms"`       // the same during the moves
	OtherRatio  float64 `json:"other_p999_ratio"`    // the median of during to before, move by move
}

// Drained is the result of the part drain: all shards of a host leave it, half of them for each of two others. Times are in
// milliseconds unless noted.
type Drained struct {
	Shards  int     `json:"shard_count"`
	Seconds float64 `json:"seconds"`
	Stall   float64 `json:"stall_ms"` // the longest call
	Usual   float64 `json:"usual_ms"` // the longest call while nothing moves
	Counts
}

// Counts are the results of the calls to the shards that move.
type Counts struct {
	Calls   int      `json:"calls"`
	Failed  int      `json:"failed"`
	Errors  []string `json:"errors"` // the first few
	Written int      `json:"written"`
	Lost    int      `json:"lost"`    // acknowledged rows that are missing
	Doubled int      `json:"doubled"` // rows that exist more than once
	Falling int      `json:"falling"` // IDs that are not greater than the one before
}

func (cfg Config) withDefaults() Config {
	if cfg.Rows <= 0 {
		cfg.Rows = 1_000_000
	}
	if cfg.Moves <= 0 {
		cfg.Moves = 10
	}
	if cfg.Callers <= 0 {
		cfg.Callers = 4
	}
	if cfg.Shards <= 0 {
		cfg.Shards = 100
	}
	if cfg.Turn <= 0 {
		cfg.Turn = 2 * time.Second
	}
	if cfg.Hold <= 0 {
		cfg.Hold = 25 * time.Second
	}
	if cfg.Rate <= 0 {
		cfg.Rate = 10e6
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	return cfg
}
