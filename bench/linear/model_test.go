package linear_test

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/bench/linear"
)

// loads and swaps return operations that last from begin to end.
func loads(begin, end time.Duration, version, change int) linear.Operation {
	return linear.Operation{Call: begin, Return: end, From: -1, Version: version, Loaded: change}
}

func swaps(begin, end time.Duration, from, change int, outcome linear.Outcome, version int) linear.Operation {
	return linear.Operation{Call: begin, Return: end, From: from, Change: change, Outcome: outcome, Version: version}
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	const made, conflict, unknown, refused = linear.Done, linear.Conflict, linear.Unknown, linear.Refused
	for _, test := range []struct {
		name       string
		operations []linear.Operation
		versions   map[int]int
		want       porcupine.CheckResult
	}{
		{"nothing", nil, nil, porcupine.Ok},
		{"one after the other", []linear.Operation{loads(0, 1, 0, 0), swaps(2, 3, 0, 1, made, 1), loads(4, 5, 1, 1)}, map[int]int{1: 1}, porcupine.Ok},
		{"an old version", []linear.Operation{swaps(0, 1, 0, 1, made, 1), loads(2, 3, 0, 0)}, map[int]int{1: 1}, porcupine.Illegal},
		{"an old version at the same time", []linear.Operation{swaps(0, 3, 0, 1, made, 1), loads(2, 4, 0, 0)}, map[int]int{1: 1}, porcupine.Ok},
		{"before it is made", []linear.Operation{loads(0, 1, 1, 1), swaps(2, 3, 0, 1, made, 1)}, map[int]int{1: 1}, porcupine.Illegal},
		{"new, then old", []linear.Operation{swaps(0, 9, 0, 1, made, 1), loads(1, 2, 1, 1), loads(3, 4, 0, 0)}, map[int]int{1: 1}, porcupine.Illegal},
		{"two winners", []linear.Operation{swaps(0, 5, 0, 1, made, 1), swaps(0, 5, 0, 2, made, 1)}, map[int]int{1: 2}, porcupine.Illegal},
		{"another's map", []linear.Operation{swaps(0, 1, 0, 1, made, 1), loads(2, 3, 1, 2)}, map[int]int{1: 1}, porcupine.Illegal},
		{"skips a version", []linear.Operation{swaps(0, 1, 0, 1, made, 2)}, map[int]int{2: 1}, porcupine.Illegal},
		{"conflict", []linear.Operation{swaps(0, 1, 0, 1, made, 1), swaps(2, 3, 0, 2, conflict, 1)}, map[int]int{1: 1}, porcupine.Ok},
		{"conflict with itself", []linear.Operation{swaps(2, 3, 0, 2, conflict, 0)}, nil, porcupine.Illegal},
		{"conflict that finds a past version", []linear.Operation{
			swaps(0, 1, 0, 1, made, 1), swaps(2, 3, 1, 2, made, 2), swaps(4, 5, 0, 3, conflict, 1),
		}, map[int]int{1: 1, 2: 2}, porcupine.Illegal},
		{"unknown, made at once", []linear.Operation{swaps(0, 1, 0, 1, unknown, 0), loads(2, 3, 1, 1)}, map[int]int{1: 1}, porcupine.Ok},
		{"unknown, made long after", []linear.Operation{swaps(0, 1, 0, 1, unknown, 0), loads(2, 3, 0, 0), loads(4, 5, 1, 1)}, map[int]int{1: 1}, porcupine.Ok},
		{"unknown, never made", []linear.Operation{swaps(0, 1, 0, 1, unknown, 0), swaps(2, 3, 0, 2, made, 1)}, map[int]int{1: 2}, porcupine.Ok},
		{"unknown, made before its call", []linear.Operation{loads(0, 1, 1, 1), swaps(2, 3, 0, 1, unknown, 0)}, map[int]int{1: 1}, porcupine.Illegal},
		{"unknown, made twice", []linear.Operation{swaps(0, 1, 0, 1, unknown, 0), loads(2, 3, 1, 1), loads(4, 5, 2, 1)}, map[int]int{1: 1, 2: 1}, porcupine.Illegal},
		{"unknown, made and undone", []linear.Operation{swaps(0, 1, 0, 1, unknown, 0), loads(2, 3, 1, 1), loads(4, 5, 0, 0)}, map[int]int{}, porcupine.Illegal},
		{"unknown, seen and lost", []linear.Operation{swaps(0, 1, 0, 1, unknown, 0), loads(2, 3, 1, 1), swaps(4, 5, 0, 2, made, 1)}, map[int]int{1: 2}, porcupine.Illegal},
		{"refused", []linear.Operation{swaps(0, 1, 0, 1, refused, 0), loads(2, 3, 0, 0)}, nil, porcupine.Ok},
	} {
		if got := linear.Linearizable(test.operations, test.versions, time.Minute); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// plain is the same model without the shortcuts of the search. The versions are the changes that succeeded.
func plain(versions map[int]int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return [2]int{} },
		Step: func(before, input, _ any) (bool, any) {
			now, o := before.([2]int), input.(linear.Operation)
			switch {
			case o.From < 0:
				return now == [2]int{o.Version, o.Loaded}, now
			case o.Outcome == linear.Conflict:
				return now[0] == o.Version && o.Version != o.From, now
			case o.Outcome == linear.Unknown && (now[0] != o.From || versions[o.From+1] != o.Change):
				return true, now
			case o.Outcome == linear.Unknown:
				return true, [2]int{o.From + 1, o.Change}
			}
			return now[0] == o.From && o.Version == o.From+1, [2]int{o.Version, o.Change}
		},
	}
}

// The shortcuts of the search do not change its result.
func TestLinearizableAgreesWithPlainModel(t *testing.T) {
	t.Parallel()
	verdicts := map[porcupine.CheckResult]int{}
	rapid.Check(t, func(t *rapid.T) {
		var operations []linear.Operation
		versions := map[int]int{}
		for version := range rapid.IntRange(0, 3).Draw(t, "versions") {
			versions[version+1] = version + 1 // by the change of that number
		}
		for change := 1; change <= len(versions); change++ {
			operations = append(operations, drawn(t, linear.Operation{
				From: change - 1, Change: change, Version: change, Outcome: rapid.SampledFrom([]linear.Outcome{linear.Done, linear.Unknown}).Draw(t, "outcome"),
			}))
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "others") {
			version := rapid.IntRange(0, len(versions)).Draw(t, "version")
			o := linear.Operation{From: -1, Version: version, Loaded: versions[version]}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				o = linear.Operation{From: rapid.IntRange(0, 3).Draw(t, "from"), Change: 10 + i, Version: version, Outcome: linear.Conflict}
			case 1:
				o = linear.Operation{From: rapid.IntRange(0, 3).Draw(t, "from"), Change: 10 + i, Outcome: linear.Unknown}
			}
			operations = append(operations, drawn(t, o))
		}
		var history []porcupine.Operation
		for _, o := range operations {
			end := int64(o.Return)
			if o.Outcome == linear.Unknown {
				end = math.MaxInt64
			}
			history = append(history, porcupine.Operation{Input: o, Call: int64(o.Call), Return: end})
		}
		want := porcupine.CheckOperationsTimeout(plain(versions), history, 0)
		if got := linear.Linearizable(operations, versions, 0); got != want {
			t.Fatalf("got %s, want %s of %v", got, want, operations)
		}
		verdicts[want]++
	})
	if verdicts[porcupine.Ok] == 0 || verdicts[porcupine.Illegal] == 0 {
		t.Errorf("one-sided: %v", verdicts)
	}
}

// drawn gives an operation random times.
func drawn(t *rapid.T, o linear.Operation) linear.Operation {
	o.Call = time.Duration(rapid.IntRange(0, 12).Draw(t, "call"))
	o.Return = o.Call + time.Duration(rapid.IntRange(0, 12).Draw(t, "took"))
	return o
}
