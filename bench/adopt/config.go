package adopt

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// The last gates of a run.
const (
	EndFinish = "finish"
	EndBack   = "back"
)

// Config configures [Run].
type Config struct {
	NewHosts func(ctx context.Context) ([]shards.Host, error) // an empty database of a superuser, another one of the same server with each call

	Rows    int           // of the old tables. Defaults to 5,000,000
	Shards  int           // Defaults to 64
	Clients int           // so many of the old code, and as many of the new. Defaults to 2
	Pause   time.Duration // of a client between two statements. Defaults to 2 ms
	Turn    time.Duration // of clients alone before gates and between them. Defaults to 3 s
	Rounds  int           // of turns in which statements are compared. Defaults to 5
	Calls   int           // of each side in a turn, at most. Defaults to 100
	End     string        // EndFinish, or EndBack after gate 2. Defaults to EndFinish

	Progress func(what string)

	damage func(ctx context.Context, conn *pgx.Conn) error // of tests: is called once shards have tables
}

// Report is the result of [Run].
type Report struct {
	Rows       int         `json:"rows"` // of the old tables when clients began
	Shards     int         `json:"shard_count"`
	Clients    int         `json:"clients"` // of the old code, and as many of the new
	Rounds     int         `json:"rounds"`
	Version    string      `json:"postgres"`
	OldBytes   int64       `json:"old_bytes"` // of the old tables, with indexes, when clients began
	Steps      []Step      `json:"steps"`
	Statements []Statement `json:"statements"`
	Counts
}

// Step is one gate, or the time between.
type Step struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Ratio   float64 `json:"ratio"`      // of the time to that of pg_dump and psql; 0 if it is nothing to compare
	Longest float64 `json:"longest_ms"` // statement of a client
	Which   string  `json:"longest"`    // statement that was, and of which code
	Median  float64 `json:"median_ms"`  // of the clients' statements
	Calls   int     `json:"calls"`      // statements of clients
	Peak    int64   `json:"peak_bytes"` // of the database, sampled; for pg_dump and psql of both databases
	PeakTo  float64 `json:"peak_ratio"` // to the size of the old tables
	WAL     int64   `json:"wal_bytes"`  // that the server wrote
}

// Statement compares a statement in an adopted database with the same in a plain copy of it. Times are medians of the rounds.
type Statement struct {
	Stage string  `json:"stage"` // view, forward mirror, backward mirror
	Table string  `json:"table"`
	What  string  `json:"what"` // insert, update, select, delete
	Ours  float64 `json:"ours_us"`
	Plain float64 `json:"plain_us"`
	Ratio float64 `json:"ratio"` // the median of the rounds'
	More  float64 `json:"more_us"`
}

// Counts are the results of clients and comparisons. All but Refused, Written and Compared have to be 0.
type Counts struct {
	Written   int      `json:"written"`  // rows that clients inserted, updated or deleted
	Compared  int      `json:"compared"` // rows of shards with those of old tables, in all comparisons
	Refused   int      `json:"refused"`  // writes of the old code, when the old tables were closed
	Failed    int      `json:"failed"`   // other statements of clients
	Lost      int      `json:"lost"`
	Doubled   int      `json:"doubled"`
	Misplaced int      `json:"misplaced"` // rows in a wrong shard
	Changed   int      `json:"changed"`   // rows with other content than was last written, also when a client read them
	Errors    []string `json:"errors"`    // the first few
}

func (c Counts) wrong() bool { return c.Failed+c.Lost+c.Doubled+c.Misplaced+c.Changed > 0 }

func (cfg Config) withDefaults() Config {
	for value, otherwise := range map[*int]int{&cfg.Rows: 5_000_000, &cfg.Shards: 64, &cfg.Clients: 2, &cfg.Rounds: 5, &cfg.Calls: 100} {
		if *value <= 0 {
			*value = otherwise
		}
	}
	for value, otherwise := range map[*time.Duration]time.Duration{&cfg.Pause: 2 * time.Millisecond, &cfg.Turn: 3 * time.Second} {
		if *value <= 0 {
			*value = otherwise
		}
	}
	if cfg.End == "" {
		cfg.End = EndFinish
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	return cfg
}
