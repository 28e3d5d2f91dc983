package stores

import (
	"context"

	"github.com/kiloshard/kiloshard/shards"
)

// Config configures [Run].
type Config struct {
	NewHosts func(ctx context.Context) ([]shards.Host, error) // two empty hosts

	Only     []string // the parts to run, of those that [Parts] returns. Defaults to all
	Shards   int      // over both hosts. Defaults to 200
	Rounds   int      // each with one turn of both sides. Defaults to 9
	Calls    int      // of each side in a round. Defaults to 4000
	Callers  int      // at the same time. Defaults to 16
	IDs      int      // of GetMany. Defaults to 500
	Entities int      // that the cleaner fills an index with. Defaults to 400,000

	Progress func(what string)
}

// Report is the result of [Run].
type Report struct {
	Shards  int      `json:"shard_count"`
	Rounds  int      `json:"rounds"`
	Callers int      `json:"callers"`
	Points  []Figure `json:"points"`
	Filled  int      `json:"filled"` // entities
	Rate    float64  `json:"filled_per_second"`
	// WithCheck includes the check of each row of the index afterwards.
	WithCheck float64 `json:"filled_and_checked_per_second"`
}

// Figure compares one operation. Times are microseconds per call, over all callers, medians of the rounds.
type Figure struct {
	What   string  `json:"what"`
	Ours   float64 `json:"ours_us"`
	ByHand float64 `json:"by_hand_us"`
	Ratio  float64 `json:"ratio"` // of ours to by hand, the median of the rounds'
	// Messages per call, over all rounds. A message is everything that is sent on a connection before it answers; calls
	// that are sent together share one.
	OurMessages    float64 `json:"our_messages"`
	ByHandMessages float64 `json:"by_hand_messages"`
}

func (cfg Config) withDefaults() Config {
	for value, otherwise := range map[*int]int{
		&cfg.Shards: 200, &cfg.Rounds: 9, &cfg.Calls: 4000, &cfg.Callers: 16, &cfg.IDs: 500, &cfg.Entities: 400_000,
	} {
		if *value <= 0 {
			*value = otherwise
		}
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	return cfg
}
