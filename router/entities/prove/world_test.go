package prove

import "fmt"

// The values of an entity. An entity may also have none.
const (
	none int8 = iota
	x
	y
	values
)

const (
	a, b     = 0, 1 // the entities
	entities = 2
	programs = 4 // three writers and a cleaner
	versions = 10
)

var (
	entityNames = []string{"A", "B"}
	valueNames  = []string{"no value", "x", "y"}
)

// entity is a row of table entities. Version 0 means that there is none.
type entity struct{ version, value int8 }

// state is the state of a row of table entity_work.
type state int8

const (
	absent state = iota
	claims
	written
	dropped
)

// work is a row of table entity_work.
type work struct {
	state         state
	of            int8
	before, after int8
}

// holder is a row of the unique index. Version 0 means that there is none.
type holder struct{ of, version int8 }

// world is all that there is. A version is also the position of its work.
type world struct {
	last    int8 // version
	e       [entities]entity
	unique  [values]holder
	rows    [values][entities]int8 // versions of the rows of the other index
	w       [versions]work
	p       [programs]program
	crashes int8 // that may still happen
	takes   int8 // of work by the cleaner
	walks   int8 // of the cleaner, which compares an entity with its rows
}

// pending reports whether there is work for an entity, besides that of a version.
func (w *world) pending(of, besides int8) bool {
	for v := range w.w {
		if int8(v) != besides && w.w[v].state != absent && w.w[v].of == of {
			return true
		}
	}
	return false
}

func (w *world) claiming(of int8) bool {
	for _, work := range w.w {
		if work.state == claims && work.of == of {
			return true
		}
	}
	return false
}

// end ends the claims for an entity up to a version, besides that version.
func (w *world) end(of, upTo, besides int8) {
	for v := range w.w {
		if work := &w.w[v]; work.state == claims && work.of == of && int8(v) <= upTo && int8(v) != besides {
			work.state = dropped
		}
	}
}

// wrong returns what is wrong in a world, or "".
func (w *world) wrong() string {
	for i, e := range w.e {
		if e.version == 0 || e.value == none {
			continue
		}
		name, value := entityNames[i], valueNames[e.value]
		if u := w.unique[e.value]; u.version == 0 || u.of != int8(i) {
			return fmt.Sprintf("%s has %s, and the unique index has no row of it", name, value)
		}
		if w.rows[e.value][i] == 0 && !w.pending(int8(i), 0) {
			return fmt.Sprintf("%s has %s, the other index has no row of it, and no work waits", name, value)
		}
	}
	return ""
}

// exact returns which row differs from the entities, or "".
func (w *world) exact() string {
	for value := x; value < values; value++ {
		if u := w.unique[value]; u.version > 0 && (w.e[u.of].version == 0 || w.e[u.of].value != value) {
			return fmt.Sprintf("the unique index has %s of %s, which does not have it", valueNames[value], entityNames[u.of])
		}
		for i, e := range w.e {
			if has := e.version > 0 && e.value == value; has != (w.rows[value][i] > 0) {
				return fmt.Sprintf("the other index differs from %s in %s", entityNames[i], valueNames[value])
			}
		}
	}
	return ""
}
