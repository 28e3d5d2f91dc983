package bench

import (
	"context"
	"maps"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// FailoverConfig says how [Failover] measures.
type FailoverConfig struct {
	// Servers configures the servers. Their source is always Local, since the benchmark kills, freezes and copies them.
	Servers localpg.Config

	Only    []string      // the parts to run, of those that [FailoverParts] returns. Defaults to all
	Turn    time.Duration // how long the load runs before the fault, and after it. Defaults to 4 s
	Down    time.Duration // from the fault to the promotion of the standby, or to the end of the cut. Defaults to 3 s
	Callers int           // of each host: half of them write, half of them read. Defaults to 16
	Pause   time.Duration // of each caller after each call. Defaults to 5 ms

	// FailAfter is how long a host may be silent before the router considers it down. Defaults to the router's default.
	FailAfter time.Duration

	Progress func(what string)
}

// FailoverReport is what [Failover] measured.
type FailoverReport struct {
	Server    string           `json:"server"` // version of Postgres
	Fsync     string           `json:"fsync"`  // of the servers
	Callers   int              `json:"callers_per_host"`
	FailAfter float64          `json:"fail_after_seconds"`
	Down      float64          `json:"down_seconds"`
	Parts     []FailoverFigure `json:"parts"`
}

// FailoverFigure is the result of one fault. Times are in milliseconds.
type FailoverFigure struct {
	Part string `json:"part"`

	// Of the host without the fault.
	OtherCalls     int     `json:"other_calls"`
	OtherErrors    int     `json:"other_errors"`
	OtherBeforeP99 float64 `json:"other_p99_before_ms"`
	OtherDuringP99 float64 `json:"other_p99_during_ms"` // from the fault until the host was back
	OtherRatio     float64 `json:"other_p99_ratio"`

	// Of the host with the fault.
	FirstError *float64       `json:"first_error_ms"`    // from the fault to the first call that failed; nil if none did
	LastStuck  float64        `json:"last_stuck_ms"`     // from the fault until the last call in progress ended
	FailFast   *float64       `json:"fail_fast_p99_ms"`  // of failed calls that began after the host was found down; nil if there are none
	Resume     float64        `json:"resume_ms"`         // from when the new primary accepts writes, or the cut ends, to the first acknowledged write
	Errors     map[string]int `json:"errors"`            // of its calls by kind
	Acked      int            `json:"acknowledged"`      // writes
	Lost       int            `json:"lost"`              // of them, how many are missing
	Doubled    int            `json:"doubled"`           // rows that exist more than once
	Unknown    int            `json:"unknown"`           // writes whose connection was lost before the answer came
	UnknownRan int            `json:"unknown_and_there"` // of them, how many exist
	Astray     int            `json:"astray"`            // rows written to the old primary after the promotion
}

// failoverPart is one fault.
type failoverPart = part[func(ctx context.Context, b *failoverBench) error]

func failoverParts() []failoverPart {
	return []failoverPart{
		{"kill", func(ctx context.Context, b *failoverBench) error {
			return b.promotion(ctx, (*localpg.Server).Kill, nil)
		}},
		{"freeze", func(ctx context.Context, b *failoverBench) error {
			return b.promotion(ctx, (*localpg.Server).Freeze, (*localpg.Server).Thaw)
		}},
		{"cut", func(ctx context.Context, b *failoverBench) error { return b.cut(ctx) }},
	}
}

// FailoverParts returns the names of the parts of [Failover], in the order in which they run.
func FailoverParts() []string {
	return namesOf(failoverParts())
}

// Failover runs a router under load on two hosts, and one of them fails: its primary is killed or frozen and its
// synchronous standby is promoted, or the network to it is cut for a while. Each caller makes one call at a time without a
// timeout, and retries it if that is safe. Afterwards Failover checks that all acknowledged writes exist.
func Failover(ctx context.Context, cfg FailoverConfig) (*FailoverReport, error) {
	cfg = cfg.withDefaults()
	b := &failoverBench{cfg: cfg, report: FailoverReport{
		Callers: cfg.Callers, FailAfter: cfg.FailAfter.Seconds(), Down: cfg.Down.Seconds(), Fsync: cfg.Servers.Settings["fsync"],
	}}
	err := runParts(failoverParts(), cfg.Only, func(p failoverPart) error {
		b.part = p.name
		cfg.Progress(p.name)
		return p.run(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	return &b.report, nil
}

func (cfg FailoverConfig) withDefaults() FailoverConfig {
	cfg.Servers.Source = localpg.Local
	settings := map[string]string{"synchronous_commit": "on"} // otherwise commits never wait for the standby
	maps.Copy(settings, cfg.Servers.Settings)
	cfg.Servers.Settings = settings
	if cfg.Turn <= 0 {
		cfg.Turn = 4 * time.Second
	}
	if cfg.Down <= 0 {
		cfg.Down = 3 * time.Second
	}
	if cfg.Callers <= 0 {
		cfg.Callers = 16
	}
	if cfg.Pause <= 0 {
		cfg.Pause = 5 * time.Millisecond
	}
	if cfg.FailAfter <= 0 {
		cfg.FailAfter = 1500 * time.Millisecond
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	return cfg
}

// failoverBench is the state of one [Failover].
type failoverBench struct {
	cfg    FailoverConfig
	part   string // that is running
	report FailoverReport
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
