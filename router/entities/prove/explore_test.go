package prove

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// most is how many worlds an exploration may have before it is given up.
const most = 3_000_000

// next calls to with every world that can come of this one, and with what has happened.
func (w *world) next(r *protocol, to func(next world, what string)) {
	for i := range w.p {
		name := string(rune('1' + i))
		if w.p[i].kind == cleaner {
			name = "the cleaner"
			w.take(r, i, to)
		}
		n := *w
		if what, ok := r.act(&n, i); ok {
			if n.p[i].at == ended {
				n.p[i] = program{kind: n.p[i].kind, at: ended}
			}
			to(n, r.say("%s %s", name, what))
		}
		if p := w.p[i]; w.crashes > 0 && p.at != beginning && p.at != ended {
			n := *w
			n.crashes--
			n.p[i] = program{kind: p.kind, at: ended}
			if p.kind == cleaner {
				n.p[i].at = beginning
			}
			to(n, r.say("%s dies", name))
		}
	}
}

// take makes the cleaner take any work, also that of a writer that is alive, or read any entity that has a value.
func (w *world) take(r *protocol, i int, to func(next world, what string)) {
	if w.p[i].at != beginning {
		return
	}
	for of, e := range w.e {
		if w.walks > 0 && e.version > 0 && e.value != none {
			n := *w
			n.walks--
			n.p[i] = program{kind: cleaner, of: int8(of), at: adding, now: e}
			to(n, r.say("the cleaner reads %s with %s and version %d", entityNames[of], valueNames[e.value], e.version))
		}
	}
	if w.takes == 0 {
		return
	}
	for v := range w.w {
		if work := w.w[v]; work.state != absent {
			n := *w
			n.takes--
			n.p[i] = program{kind: cleaner, of: work.of, at: releasing, v: int8(v), before: work.before, after: work.after}
			to(n, r.say("the cleaner takes the work of version %d", v))
		}
	}
}

// settled returns what is wrong after all programs have ended and a cleaner has done all work. Without crashes and a cleaner
// the writers alone must have made indexes and entities agree.
func (w *world) settled(r *protocol, alone bool) string {
	if alone {
		for v := range w.w {
			if w.w[v].state != absent {
				return "the writers have left work"
			}
		}
		return w.exact()
	}
	n := *w
	for v := range n.w {
		if work := n.w[v]; work.state != absent {
			n.p[programs-1] = program{kind: cleaner, of: work.of, at: releasing, v: int8(v), before: work.before, after: work.after}
			for n.p[programs-1].at != beginning {
				r.act(&n, programs-1)
			}
		}
	}
	return n.wrong()
}

// explore goes through all worlds that can come of the first one, the nearest first. It returns how many there are, and the
// shortest story that ends with something wrong, or "".
func explore(r protocol, first world) (worlds int, story string) {
	type visit struct {
		world
		before int32
	}
	alone := first.crashes == 0 && first.takes == 0 // a walk must leave nothing behind
	seed := maphash.MakeSeed()
	visits := []visit{{first, -1}}
	seen := map[uint64]struct{}{maphash.Comparable(seed, first): {}}
	for i := 0; i < len(visits); i++ {
		if i == most {
			return i, "not known: there are too many worlds"
		}
		this := visits[i].world
		wrong, last := this.wrong(), true
		if wrong == "" {
			this.next(&r, func(next world, _ string) {
				last = false
				h := maphash.Comparable(seed, next)
				if _, ok := seen[h]; !ok {
					seen[h] = struct{}{}
					visits = append(visits, visit{next, int32(i)})
				}
			})
			if last {
				wrong = this.settled(&r, alone)
			}
		}
		if wrong == "" {
			continue
		}
		var path []world
		for at := int32(i); at >= 0; at = visits[at].before {
			path = append(path, visits[at].world)
		}
		slices.Reverse(path)
		return len(visits), tell(r, path) + "\n     " + wrong
	}
	return len(visits), ""
}

// tell says what happens on a path of worlds.
func tell(r protocol, path []world) string {
	r.tells = true
	var b strings.Builder
	for k := range path[1:] {
		var happens string
		path[k].next(&r, func(next world, what string) {
			if next == path[k+1] {
				happens = what
			}
		})
		fmt.Fprintf(&b, "\n%3d. %s", k+1, happens)
	}
	return b.String()
}
