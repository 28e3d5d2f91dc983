package model

import (
	"fmt"
	"slices"
	"strings"
)

// most is how many worlds an exploration may have before it is given up: some 80 bytes each.
const most = 1_500_000

// explore goes through all worlds that can come of the first one, the nearest first. It returns how many there are, and
// the shortest story of a value that is given twice, or "".
func explore(e engine, r rules, first world) (worlds int, story string) {
	type visit struct {
		key
		before int32
	}
	visits := []visit{{first.key(), -1}}
	seen := map[key]struct{}{first.key(): {}}
	for i := 0; i < len(visits) && i < most; i++ {
		var twice *world
		this := visits[i].world()
		this.next(&e, r, func(next world, _ string) {
			if next.twice {
				twice = &next
				return
			}
			k := next.key()
			if _, ok := seen[k]; !ok {
				seen[k] = struct{}{}
				visits = append(visits, visit{k, int32(i)})
			}
		})
		if twice != nil {
			var path []key
			for at := int32(i); visits[at].before >= 0; at = visits[at].before {
				path = append(path, visits[at].key)
			}
			slices.Reverse(path)
			return len(visits), tell(e, r, first, path)
		}
	}
	if len(visits) > most {
		return len(visits), "not known: there are too many worlds"
	}
	return len(visits), ""
}

// tell goes the way from the first world again and says what happens, up to the value that is given twice.
func tell(e engine, r rules, w world, path []key) string {
	e.tells = true
	var b strings.Builder
	fmt.Fprintf(&b, "     the clock is at %d, the last value is %d", w.clock, w.last)
	for n := range len(path) + 1 {
		var after world
		var happens string
		w.next(&e, r, func(next world, what string) {
			if n == len(path) && next.twice || n < len(path) && !next.twice && next.key() == path[n] {
				after, happens = next, what
			}
		})
		w = after
		fmt.Fprintf(&b, "\n%3d. %s", n+1, happens)
	}
	return b.String() + " - which was given before"
}
