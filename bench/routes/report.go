package routes

import (
	"slices"

	"github.com/kiloshard/kiloshard/bench/stats"
)

// Report is the result of [Run].
type Report struct {
	Server string   `json:"server"` // version of Postgres
	Fsync  bool     `json:"fsync"`  // of the servers
	Rounds int      `json:"rounds"`
	Turn   float64  `json:"turn_seconds"`
	Conns  int      `json:"connections_per_host"`
	Rows   []Figure `json:"rows"`
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

// add adds a figure, from the values of each round. plain is empty if there is nothing to compare with.
func (r *Report) add(f Figure, ours, plain []float64) {
	f.Ours = stats.Median(ours)
	if len(plain) > 0 {
		f.Plain = new(stats.Median(plain))
		if !slices.Contains(plain, 0) {
			f.Ratio = new(stats.MedianRatio(ours, plain))
		}
	}
	r.Rows = append(r.Rows, f)
}
