package moves

import (
	"context"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// UnderWay returns the moves that have not ended, as far as hosts answer.
func UnderWay(ctx context.Context, m *shards.Map) []Row {
	all, _ := move.Status(ctx, m) // what it holds is right also with an error
	result := []Row{}
	for _, v := range all {
		if v.Outcome == ledger.UnderWay {
			row := rowOf(v)
			row.unserved = row.Fenced() && !row.Working && m.Has(v.Shard) && m.Host(v.Shard).Name == v.Source
			result = append(result, row)
		}
	}
	return result
}

// RowsOf returns a table of moves.
func RowsOf(moves []Row) [][]string {
	rows := [][]string{{">SHARD", "FROM", "TO", "STEP", "SINCE", "MOVER"}}
	for _, v := range moves {
		rows = append(rows, []string{cli.Thousands(int(v.Shard)), v.Source, v.Target, v.Step, cli.Stamp(v.Since), v.mover()})
	}
	return rows
}

// mover says whether a mover is at work on a move.
func (v Row) mover() string {
	if v.Working {
		return "at work"
	}
	return "none"
}

// Fenced reports whether the source of a move under way refuses. The target serves once the map names it.
func (v Row) Fenced() bool {
	return v.Step == string(ledger.Fenced) || v.Step == string(ledger.Promoting)
}

// movesShown is how many moves without a mover are named; JSON has all.
const movesShown = 10

// Warn names the moves without a mover: they make no progress. It reports whether no host serves some of their shards, which are fenced.
func Warn(a *cli.App, moves []Row) (unserved bool) {
	idle := slices.DeleteFunc(slices.Clone(moves), func(v Row) bool { return v.Working })
	slices.SortStableFunc(idle, func(x, y Row) int { return rankOf(x) - rankOf(y) })
	for _, v := range idle[:min(len(idle), movesShown)] {
		if v.unserved {
			fmt.Fprintf(a.Stderr, "nobody serves shard %d: it is fenced on %s, and no mover is at work; run kiloshard move resume, or move abort\n", v.Shard, v.Source)
			continue
		}
		fmt.Fprintf(a.Stderr, "the move of shard %d from %s to %s has no mover: see kiloshard move resume, or move abort\n", v.Shard, v.Source, v.Target)
	}
	if more := len(idle) - movesShown; more > 0 {
		fmt.Fprintf(a.Stderr, "and %s more\n", cli.Count(more, "move"))
	}
	return len(idle) > 0 && idle[0].unserved
}

// rankOf puts shards that no host serves first.
func rankOf(v Row) int {
	if v.unserved {
		return 0
	}
	return 1
}
