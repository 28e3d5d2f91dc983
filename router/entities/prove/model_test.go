package prove

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
)

func put(of, value int8) program    { return program{kind: putter, of: of, value: value} }
func refuse(of, value int8) program { return program{kind: refused, of: of, value: value} }
func del(of int8) program           { return program{kind: deleter, of: of} }

// begin is a world in which A and B have values, and three writers begin.
func begin(ofA, ofB int8, more world, writers ...program) world {
	w := more
	for i, value := range []int8{ofA, ofB} {
		if value == none {
			continue
		}
		w.last++
		w.e[i] = entity{w.last, value}
		w.unique[value] = holder{int8(i), w.last}
		w.rows[value][i] = w.last
	}
	copy(w.p[:], writers)
	w.p[programs-1] = program{kind: cleaner}
	return w
}

// scenarios are what the protocol has to bear. In some a row of A is in the unique index, and A does not have its value.
var scenarios = map[string]world{
	"away and back, and B":       begin(x, none, world{crashes: 1, takes: 1}, put(a, y), put(a, x), put(b, x)),
	"away and back, cleaned":     begin(x, none, world{takes: 2}, put(a, y), put(a, x), put(b, x)),
	"away and back, alone":       begin(x, none, world{}, put(a, y), put(a, x), put(b, x)),
	"the same value":             begin(none, none, world{crashes: 1, takes: 1}, put(a, x), put(a, x), put(b, x)),
	"a refused body":             begin(none, none, world{crashes: 1, takes: 1}, refuse(a, x), put(a, x), put(b, x)),
	"a refused body, alone":      begin(none, none, world{}, refuse(a, x), put(a, x), put(b, x)),
	"two refused bodies, alone":  begin(x, none, world{}, refuse(a, y), refuse(a, y), put(b, y)),
	"a refused body, unchanged":  begin(x, none, world{takes: 1}, refuse(a, y), put(a, y), put(a, x)),
	"x, y, x, killed":            begin(none, none, world{crashes: 1}, put(a, x), put(a, y), put(a, x)),
	"x, y, x, alone":             begin(none, none, world{}, put(a, x), put(a, y), put(a, x)),
	"deleted and put":            begin(x, none, world{crashes: 1, takes: 1}, del(a), put(a, x), put(b, x)),
	"deleted and put, alone":     begin(x, none, world{}, del(a), put(a, x), put(a, y)),
	"put, deleted and put":       begin(x, none, world{takes: 2}, put(a, y), del(a), put(a, x)),
	"three values":               begin(x, none, world{crashes: 1, takes: 1}, put(a, y), put(a, x), put(a, none)),
	"away and back twice":        begin(x, none, world{crashes: 1, takes: 1}, put(a, y), put(a, x), put(a, y)),
	"values change hands":        begin(x, y, world{crashes: 1, takes: 1}, put(a, y), put(b, x), put(b, none)),
	"values change hands, alone": begin(x, y, world{}, put(a, y), put(b, x), put(b, none)),
	"walked":                     begin(x, none, world{walks: 1}, put(a, y), put(a, x), put(b, x)),
	"walked, deleted":            begin(x, none, world{walks: 1}, del(a), put(a, x), put(b, x)),
	"a stray row":                begin(none, none, world{last: 1, unique: [values]holder{x: {a, 1}}, crashes: 1}, put(a, x), put(b, x), del(a)),
	"a stray row, cleaned":       begin(none, none, world{last: 1, unique: [values]holder{x: {a, 1}}, takes: 1}, put(a, x), put(b, x), put(a, y)),
}

func TestIndexesAgreeWithEntities(t *testing.T) {
	t.Parallel()
	for name, w := range scenarios {
		t.Run(name, func(t *testing.T) {
			sum := 0
			for _, w := range inShort(w) {
				worlds, story := explore(protocol{}, w)
				if sum += worlds; story != "" {
					t.Errorf("%s", story)
				}
			}
			t.Logf("%d worlds", sum)
			if sum < 500 {
				t.Errorf("%d worlds are too few to say anything", sum)
			}
		})
	}
}

// inShort returns a scenario as make prove runs it, or else with either one death or one work that the cleaner takes.
func inShort(w world) []world {
	if pgtest.Full() || w.crashes+w.takes <= 1 {
		return []world{w}
	}
	var all []world
	if w.crashes > 0 {
		killed := w
		killed.takes = 0
		all = append(all, killed)
	}
	w.crashes, w.takes = 0, 1
	return append(all, w)
}

// TestEachSafeguardIsNeeded takes one out at a time.
func TestEachSafeguardIsNeeded(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]protocol{
		"the versions of removed rows":                 {noVersions: true},
		"the look at the claim":                        {noGuard: true},
		"the end of other claims":                      {noEnd: true},
		"versions of rows that only rise":              {lowersVersion: true},
		"the version, drawn under the lock":            {drawsEarly: true},
		"unchanged rows, written while work waits":     {noPending: true},
		"the end of claims before the entity is read":  {readsFirst: true},
		"the end of claims before a repair":            {noRelease: true},
		"the end of older claims before a repair":      {ownRelease: true},
		"the look at the version before work is done":  {blindFinish: true},
		"the work in the entity's transaction":         {lateWork: true},
		"rows in unique indexes before the entity":     {lateClaim: true},
		"the look at claims before a row is removed":   {blindContest: true},
		"the same version when a stray row is removed": {looseContest: true},
		"the end of a failed claim":                    {keepsClaim: true},
		"the second look of the walk":                  {walksOnce: true},
		"missing rows only in the walk":                {walksOver: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range bySize() {
				w := scenarios[in]
				if _, story := explore(without, w); story != "" && !strings.HasPrefix(story, "not known") {
					t.Logf("without it, in %q:%s", in, story)
					return
				}
			}
			t.Error("without it nothing goes wrong")
		})
	}
}

func bySize() []string {
	size := func(name string) int8 {
		return scenarios[name].crashes + 2*scenarios[name].takes + scenarios[name].walks
	}
	return slices.SortedFunc(maps.Keys(scenarios), func(a, b string) int { return cmp.Or(cmp.Compare(size(a), size(b)), cmp.Compare(a, b)) })
}
