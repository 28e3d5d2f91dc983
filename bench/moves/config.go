package moves

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	Callers int           // of what moves: this many write, and as many read. Defaults to 4
	Shards  int           // that leave their host in the part drain. Defaults to 100
	Turn    time.Duration // of the load before each move, as a baseline. Defaults to 2 s
	Hold    time.Duration // of the row's lock in the part lock. Defaults to 25 s
	Rate    int64         // bytes that are copied in a second in the part rate. Defaults to 10 MB

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

	Stalls []float64 `json:"stalls_ms"` // the longest that a call to the shard took, in each move, rising
	Usual  float64   `json:"usual_ms"`  // the longest while nothing moves, the median of as many times
	Fences []float64 `json:"fences_ms"` // from the locks to the fence, rising

	Seconds []float64 `json:"seconds"`      // of each move, rising
	Bare    []float64 `json:"bare_seconds"` // from CREATE SUBSCRIPTION until the tables are copied, as many
	Ratios  []float64 `json:"ratios"`       // of each move to the bare copy before it, rising
	Copied  float64   `json:"copy_seconds"` // of a move, the median until it has copied the rows
	Tried   int       `json:"tried_again"`  // cutovers that were rolled back

	Counts

	OtherFailed int     `json:"other_failed"`        // calls to other shards of both hosts
	OtherUsual  float64 `json:"other_p999_usual_ms"` // the median of the p99.9 while nothing moves
	OtherBare   float64 `json:"other_p999_bare_ms"`  // the median of that during the bare copies
	OtherDuring float64 `json:"other_p999_ms"`       // the median of that during the moves
	OtherRatio  float64 `json:"other_p999_ratio"`    // the median of during to before, move by move
}

// Drained is the result of the part drain: all shards of a host leave it, half of them for each of two others. Times are in milliseconds
// unless noted.
type Drained struct {
	Shards  int     `json:"shard_count"`
	Seconds float64 `json:"seconds"`
	Stall   float64 `json:"stall_ms"` // the longest that a call took
	Usual   float64 `json:"usual_ms"` // the longest while nothing moves
	Counts
}

// Counts are of the calls to what moves.
type Counts struct {
	Calls   int      `json:"calls"`
	Failed  int      `json:"failed"`
	Errors  []string `json:"errors"` // the first few
	Written int      `json:"written"`
	Lost    int      `json:"lost"`    // acknowledged rows that are missing
	Doubled int      `json:"doubled"` // rows that exist more than once
	Falling int      `json:"falling"` // IDs that are not greater than the one before
}

// moving is a part: some tables, and perhaps a rate, or a lock that another session holds.
type moving struct {
	name   string
	tables int
	rate   bool
	lock   bool
}

func parts() []moving {
	return []moving{{name: "table", tables: 1}, {name: "tables", tables: 10}, {name: "rate", tables: 1, rate: true}, {name: "lock", tables: 1, lock: true}}
}

// Parts returns the names of the parts of [Run], in the order in which they run.
func Parts() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return append(names, drain)
}

// Run moves a shard back and forth while callers write to it and read from it as fast as they can. It counts failed calls and
// does not retry them.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	for _, name := range cfg.Only {
		if !slices.Contains(Parts(), name) {
			return nil, fmt.Errorf("part %q: expected one of %s", name, strings.Join(Parts(), ", "))
		}
	}
	report := &Report{Rows: cfg.Rows, Callers: cfg.Callers, Hold: cfg.Hold.Seconds(), Rate: cfg.Rate}
	for _, p := range parts() {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, p.name) {
			continue
		}
		figure, err := measure(ctx, cfg, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		report.Parts = append(report.Parts, figure)
	}
	if len(cfg.Only) == 0 || slices.Contains(cfg.Only, drain) {
		drained, err := measureDrain(ctx, cfg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", drain, err)
		}
		report.Drain = drained
	}
	return report, nil
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
