package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operation is one operation of a client, and its result.
type Operation struct {
	Client       int
	Call, Return time.Duration // since the start of the run

	From   int // the version that a swap replaces; -1 for a load
	Change int // the unique number of a swap, from 1 up

	Outcome Outcome
	Version int // that was loaded, written, or found by a conflict; 0 for none
	Loaded  int // the number of the change that wrote the version that a load returned; 0 for none
}

// Outcome is how an operation ended.
type Outcome int

// The outcomes.
const (
	Done     Outcome = iota // a map was loaded, or there is none, or the swap succeeded
	Conflict                // the map was at another version
	Unknown                 // the swap may have succeeded
	Refused                 // nothing was changed or returned
)

// state is the content of a store, and how many operations have found it.
type state struct{ version, change, found int }

// step is an operation in the model.
type step struct {
	Operation
	rank  int // the place of a load or a conflict among those that found the same version, in the order of their calls
	finds int // how many operations found the version that a swap replaces
}

// model is a linearizable store.
//
// Operations that change nothing can run in any order among themselves. The model takes those that found one version in the
// order of their calls, in which no operation follows one that began after it had ended. All of them come before the
// next version, because a version never returns. This leaves one order to try instead of as many as there are subsets of
// concurrent operations.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, _ any) (bool, any) {
		now, o := before.(state), input.(step)
		switch {
		case o.From < 0:
			return now == state{o.Version, o.Loaded, o.rank}, state{now.version, now.change, now.found + 1}
		case o.Outcome == Conflict:
			ok := now.version == o.Version && now.found == o.rank && o.Version != o.From
			return ok, state{now.version, now.change, now.found + 1}
		}
		ok := now.version == o.From && now.found == o.finds && (o.Outcome == Unknown || o.Version == o.From+1)
		return ok, state{version: o.From + 1, change: o.Change}
	},
	DescribeOperation: func(input, _ any) string { return input.(step).String() },
}

// String describes the operation and its result.
func (o Operation) String() string {
	what := "load"
	if o.From >= 0 {
		what = fmt.Sprintf("change %d from version %d", o.Change, o.From)
	}
	outcome := [...]string{"done", "conflict", "unknown", "refused"}[o.Outcome]
	return fmt.Sprintf("client %d, %s to %s: %s: %s, version %d", o.Client, o.Call, o.Return, what, outcome, o.Version)
}

// Linearizable searches for an order of the operations in which each sees the effects of those before it. It returns
// [porcupine.Unknown] if the limit ends the search.
//
// A swap with an unknown outcome succeeded, at any instant after its call, if its change was loaded or is among the
// versions, which are the numbers of changes by version. Otherwise it did not, as far as the clients can tell.
func Linearizable(operations []Operation, versions map[int]int, limit time.Duration) porcupine.CheckResult {
	seen, finds := map[int]bool{}, map[int]int{}
	for _, change := range versions {
		seen[change] = true
	}
	for _, o := range operations {
		seen[o.Loaded] = true
	}
	var steps []step
	for _, o := range slices.SortedFunc(slices.Values(operations), func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) }) {
		if o.Outcome == Refused || o.Outcome == Unknown && !seen[o.Change] {
			continue
		}
		s := step{Operation: o}
		if o.From < 0 || o.Outcome == Conflict {
			s.rank = finds[o.Version]
			finds[o.Version]++
		}
		steps = append(steps, s)
	}
	history := make([]porcupine.Operation, len(steps))
	for i, s := range steps {
		s.finds = finds[s.From]
		end := int64(s.Return)
		if s.Outcome == Unknown {
			end = math.MaxInt64
		}
		history[i] = porcupine.Operation{ClientId: s.Client, Input: s, Call: int64(s.Call), Return: end}
	}
	return porcupine.CheckOperationsTimeout(model, history, limit)
}

// CompareHistory compares a store's history, the numbers of changes by version, with the clients' results, and returns the
// contradictions.
func CompareHistory(operations []Operation, versions map[int]int) []string {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	madeBy, winner, swaps := map[int]int{}, map[int]int{}, map[int]Operation{}
	for version, change := range versions {
		if version < 1 || version > len(versions) {
			complain("version %d is in a history of %d versions", version, len(versions))
		}
		if other, twice := madeBy[change]; twice {
			complain("change %d made versions %d and %d", change, other, version)
		}
		madeBy[change] = version
	}
	for _, o := range operations {
		if o.From < 0 {
			continue
		}
		swaps[o.Change] = o
		version, made := madeBy[o.Change]
		switch {
		case o.Outcome == Done:
			if other, twice := winner[o.Version]; twice {
				complain("version %d was won by changes %d and %d", o.Version, other, o.Change)
			}
			winner[o.Version] = o.Change
			if version != o.Version {
				complain("%s; in the history it is version %d (0: none)", o, version)
			}
		case o.Outcome != Unknown && made:
			complain("%s; in the history it is version %d", o, version)
		case made && version != o.From+1:
			complain("%s; in the history it is version %d", o, version)
		}
	}
	for change, version := range madeBy {
		if _, ours := swaps[change]; !ours {
			complain("version %d was made by change %d, which no client sent", version, change)
		}
	}
	return wrong
}
