package routes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/part"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

// connsPerHost is how many connections to a host each side has.
const connsPerHost = 16

// Config says how [Run] measures.
type Config struct {
	// NewHosts makes two hosts with nothing in them, each time on the same two servers.
	NewHosts func(ctx context.Context) ([]shards.Host, error)

	// NewStandby starts a standby of the server of the first host, and returns the DSN of each of its databases. Defaults to
	// leaving out the part that needs it, as when the error is [errors.ErrUnsupported].
	NewStandby func(ctx context.Context) (dsn func(database string) string, stop func() error, err error)

	Only       []string      // the parts to run, of those that [Parts] returns. Defaults to all
	Turn       time.Duration // of one side, in every round. Defaults to 1 s
	Rounds     int           // in each of which all sides take a turn. Defaults to 5
	Goroutines []int         // of the part many, one after the other. Defaults to 16, 64 and 256
	Crowd      int           // goroutines of the part starvation. Defaults to 8192
	Swaps      int           // map changes of the part swaps, one every 2 ms of its turns. Defaults to 10,000

	// Shards are how many shards of one host the part schemas has, 16 or more, one after the other. No other part with a
	// server has more than the most of them. Defaults to 1024 and 4096.
	Shards []int

	Progress func(what string)
}

// Report is the result of [Run].
type Report struct {
	Server  string   `json:"server"` // version of Postgres; empty where no part needed one
	Fsync   bool     `json:"fsync"`  // of the servers
	Rounds  int      `json:"rounds"`
	Turn    float64  `json:"turn_seconds"`
	Conns   int      `json:"connections_per_host"`
	Rows    []Figure `json:"rows"`
	LeftOut []string `json:"left_out"` // parts for which something is missing on this machine, and what
}

// Figure is one figure of both sides, each the median of the rounds.
type Figure struct {
	Part       string   `json:"part"`
	What       string   `json:"what"`
	Goroutines int      `json:"goroutines,omitzero"`
	Metric     string   `json:"metric"` // with its unit
	Ours       float64  `json:"ours"`
	Plain      *float64 `json:"plain"` // nil where there is nothing to compare with
	Ratio      *float64 `json:"ratio"` // the median of the rounds' ours/plain; nil without, and where a plain one is 0
}

// onePart is a part of [Run].
type onePart = part.Part[func(ctx context.Context, b *bench) error]

const partMany = "many" // which is drawn

func parts() []onePart {
	return []onePart{
		{Name: "decision", Run: measureDecision},
		{Name: "lone", Run: measureLone},
		{Name: partMany, Run: measureMany},
		{Name: "delay", Run: measureDelay},
		{Name: "slow", Run: measureSlow},
		{Name: "beside", Run: measureBeside},
		{Name: "inserts", Run: measureInserts},
		{Name: "observed", Run: measureObserved},
		{Name: "schemas", Run: measureSchemas},
		{Name: "starvation", Run: measureCrowd},
		getManyPart(fetchTogether),
		{Name: "swaps", Run: measureSwaps},
		{Name: "pgbouncer", Run: measurePooled},
		{Name: "replicas", Run: measureReplicas},
	}
}

// Parts returns the names of the parts of [Run], in the order in which they run.
func Parts() []string {
	return part.Names(parts())
}

// Run compares package router with pgxpool, by the same statements on the same tables, with the same number of
// connections. In every round both sides take a turn, and nobody always goes first. Before the first round each side
// has a turn that does not count, so that connections and prepared statements are there. Every row that is read is
// checked.
//
// The statements of pgxpool name the schema, so that it prepares them in its default mode, as it would without shards.
// Run skips a part that needs something this machine does not have, unless Only names the part.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	b := &bench{cfg: cfg, report: Report{Rounds: cfg.Rounds, Turn: cfg.Turn.Seconds(), Conns: connsPerHost}}
	err := part.Run(parts(), cfg.Only, func(p onePart) error {
		b.part = p.Name
		cfg.Progress(p.Name)
		return p.Run(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	return &b.report, nil
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

// bench is the state of one [Run].
type bench struct {
	cfg    Config
	part   string // that is running
	report Report
}

// progress reports what runs next.
func (b *bench) progress(format string, args ...any) {
	b.cfg.Progress(b.part + ", " + fmt.Sprintf(format, args...))
}

// add adds a row to the report, from the values of each round; plain is nil if there is nothing to compare with.
func (b *bench) add(what string, goroutines int, metric string, ours, plain []float64) {
	row := Figure{Part: b.part, What: what, Goroutines: goroutines, Metric: metric, Ours: stats.Median(ours)}
	if len(plain) > 0 {
		middle := stats.Median(plain)
		row.Plain = &middle
		if !slices.Contains(plain, 0) {
			ratio := stats.MedianRatio(ours, plain)
			row.Ratio = &ratio
		}
	}
	b.report.Rows = append(b.report.Rows, row)
}

// most returns n, limited to the largest of Config.Shards.
func (b *bench) most(n int) int { return min(n, slices.Max(b.cfg.Shards)) }
