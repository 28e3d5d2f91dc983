package drift

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
)

// group is the shards of one version with the same structure.
type group struct {
	version  int32
	sum      hash
	shards   []shards.Number // in rising order
	example  shards.Number
	numbered bool // the structure holds each shard's number
}

// structure returns the structure of the group's shards, with a mark in place of each shard's number.
func (g *group) structure(l *look) Structure {
	if g.numbered {
		return l.lines[g.example].Numbered(g.example)
	}
	return l.lines[g.example]
}

// classes returns the shards by equal hashes, the largest class first; among equally large ones that with the lowest shard.
func classes(numbers []shards.Number, sums map[shards.Number]hash) [][]shards.Number {
	byHash := map[hash][]shards.Number{}
	for _, n := range numbers {
		byHash[sums[n]] = append(byHash[sums[n]], n)
	}
	return slices.SortedFunc(maps.Values(byHash), func(a, b []shards.Number) int {
		return cmp.Or(len(b)-len(a), int(a[0]-b[0]))
	})
}

// candidates returns shards whose structures the grouping may ask for: of each of the most numerous classes
// one, and of those by the hash without the number the last one, since high numbers rarely stand for something else.
func (l *look) candidates() []shards.Number {
	var chosen []shards.Number
	for _, numbers := range l.byVersion() {
		plain, numbered := classes(numbers, l.plain), classes(numbers, l.numbered)
		if len(plain) == 1 {
			continue
		}
		for _, class := range plain[:min(len(plain), maxDifferences)] {
			chosen = append(chosen, class[0])
		}
		for _, class := range numbered[:min(len(numbered), maxDifferences)] {
			chosen = append(chosen, last(class))
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen)
}

// byVersion returns the shards at each version, in rising order.
func (l *look) byVersion() map[int32][]shards.Number {
	at := map[int32][]shards.Number{}
	for _, n := range slices.Sorted(maps.Keys(l.plain)) {
		at[l.versions[n]] = append(at[l.versions[n]], n)
	}
	return at
}

// groups groups the shards of each version: it repeatedly takes out the largest group.
func (l *look) groups() []*group {
	var groups []*group
	at := l.byVersion()
	for _, version := range slices.Sorted(maps.Keys(at)) {
		for left := at[version]; len(left) > 0; {
			g := l.largest(left)
			g.version = version
			groups = append(groups, g)
			left = slices.DeleteFunc(left, func(n shards.Number) bool {
				_, found := slices.BinarySearch(g.shards, n)
				return found
			})
		}
	}
	return groups
}

// maxTries is how many structures [look.largest] tries with the numbers of all other shards.
const maxTries = 5

// largest returns the largest group among some shards: shards with identical structures, or with structures that are
// identical except for the shards' numbers. A number may also be a constant that equals a shard's number. So for the second
// kind it writes one shard's structure with each of the other numbers, instead of comparing hashes alone. It begins with
// high numbers, which are rarely constants.
func (l *look) largest(left []shards.Number) *group {
	alike := classes(left, l.plain)[0]
	best := &group{sum: l.plain[alike[0]], shards: alike, example: alike[0]}
	numbered := slices.DeleteFunc(classes(left, l.numbered), func(class []shards.Number) bool {
		return len(class) < len(alike) || l.lines[last(class)] == nil
	})
	slices.SortStableFunc(numbered, func(a, b []shards.Number) int {
		return cmp.Or(len(b)-len(a), int(last(b)-last(a)))
	})
	for _, class := range numbered[:min(len(numbered), maxTries)] {
		if len(best.shards) == len(left) {
			break
		}
		if g := l.numberedGroup(left, last(class)); len(g.shards) > len(best.shards) {
			best = g
		}
	}
	return best
}

// numberedGroup returns the shards with example's structure, each with its own number.
func (l *look) numberedGroup(left []shards.Number, example shards.Number) *group {
	structure := l.lines[example].Numbered(example)
	g := &group{sum: structure.sum(), example: example, numbered: true}
	for _, n := range left {
		if l.plain[n] == structure.Of(n).sum() {
			g.shards = append(g.shards, n)
		}
	}
	return g
}

func last(numbers []shards.Number) shards.Number { return numbers[len(numbers)-1] }
