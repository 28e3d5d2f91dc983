package htmlreport

import (
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// outcome is the result of the run in one shard.
type outcome int

const (
	notMeant outcome = iota // the shard was not part of the run
	done
	upToDate
	failed
	notAttempted
)

// shown is the order of outcomes on the page.
var shown = []outcome{done, upToDate, failed, notAttempted, notMeant}

func (o outcome) String() string {
	return [...]string{"not in this run", "done", "up to date", "failed", "not attempted"}[o]
}

// class is the CSS class of its squares. Done shards of known duration have a class of [scale] instead.
func (o outcome) class() string { return [...]string{"m", "d", "u", "f", "n"}[o] }

// outcomes returns the result of the run in each shard of a map.
type outcomes struct {
	of   []outcome // by number
	errs map[shards.Number]error
}

// outcomesOf uses what the run returned, not its events: a shard whose event said done fails later if its host does not
// confirm it.
func outcomesOf(m *shards.Map, report migrate.Report, partial *shards.PartialError) outcomes {
	all := outcomes{of: make([]outcome, m.Len()), errs: map[shards.Number]error{}}
	put := func(set shards.Set, o outcome) {
		for n := range set.All() {
			if m.Has(n) {
				all.of[n] = o
			}
		}
	}
	put(partial.NotAttempted, notAttempted)
	put(report.UpToDate, upToDate)
	put(report.Done, done)
	for _, f := range partial.Failed {
		if m.Has(f.Shard) {
			all.of[f.Shard], all.errs[f.Shard] = failed, f.Err
		}
	}
	return all
}

func counts(of []outcome) map[outcome]int {
	total := map[outcome]int{}
	for _, o := range of {
		total[o]++
	}
	return total
}

// durations returns the durations of the done shards, as far as events reported them.
func durations(seen map[shards.Number]seen, all outcomes) []time.Duration {
	var took []time.Duration
	for n, o := range all.of {
		if s := seen[shards.Number(n)]; o == done && s.ended {
			took = append(took, s.took)
		}
	}
	return took
}
