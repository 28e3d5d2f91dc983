package htmlreport

import (
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// outcome is the result of the run in one shard.
type outcome int

const (
	notMeant outcome = iota // the run was not over this shard
	done
	upToDate
	failed
	notAttempted
)

// shown is the order in which outcomes are told.
var shown = []outcome{done, upToDate, failed, notAttempted, notMeant}

func (o outcome) String() string {
	return [...]string{"not in this run", "done", "up to date", "failed", "not attempted"}[o]
}

// class is that of its squares. Those of done shards are of a [scale] where their durations are known.
func (o outcome) class() string { return [...]string{"m", "d", "u", "f", "n"}[o] }

// outcomes returns the result of the run in each shard of a map.
type outcomes struct {
	of   []outcome // by number
	errs map[shards.Number]error
}

// outcomesOf goes by what the run returned: a shard whose events said that it is done may have failed later, when
// its host did not confirm it.
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

// durations returns how long the shards took that are done, as far as events told.
func durations(seen map[shards.Number]seen, all outcomes) []time.Duration {
	var took []time.Duration
	for n, o := range all.of {
		if s := seen[shards.Number(n)]; o == done && s.ended {
			took = append(took, s.took)
		}
	}
	return took
}
