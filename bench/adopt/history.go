package adopt

import (
	"math/rand/v2"
	"slices"
)

// key is the key of a row of a table in chain or pairs: its ID and that of the row above it, or both columns.
type key struct{ id, parent int64 }

// state is the last state of a row that a client has written. A row without text has none.
type state struct {
	user    int64
	text    string
	deleted bool
}

// history is what one client has written. No other client writes these rows.
type history struct {
	rows  map[string]map[key]state   // by table
	there map[string][]key           // keys of rows; those of deleted ones leave when pick meets them
	below map[string]map[int64][]key // by table, and the ID of the row that they are deleted with
}

func newHistory() *history {
	h := &history{map[string]map[key]state{}, map[string][]key{}, map[string]map[int64][]key{}}
	for _, t := range slices.Concat(chain, pairs) {
		h.rows[t.name], h.below[t.name] = map[key]state{}, map[int64][]key{}
	}
	return h
}

func (h *history) put(table string, k key, s state) {
	if was, ok := h.rows[table][k]; !ok || was.deleted {
		h.there[table] = append(h.there[table], k)
		if !ok {
			at := k.parent
			if s.text == "" {
				at = k.id
			}
			h.below[table][at] = append(h.below[table][at], k)
		}
	}
	h.rows[table][k] = s
}

// pick returns a row that is there, if there is one.
func (h *history) pick(r *rand.Rand, table string) (key, state, bool) {
	for keys := h.there[table]; len(keys) > 0; keys = h.there[table] {
		i := r.IntN(len(keys))
		k := keys[i]
		if s := h.rows[table][k]; !s.deleted {
			return k, s, true
		}
		keys[i] = keys[len(keys)-1]
		h.there[table] = keys[:len(keys)-1]
	}
	return key{}, state{}, false
}

// remove deletes a row, and those that a cascade deletes with it.
func (h *history) remove(table string, k key) {
	s := h.rows[table][k]
	s.deleted = true
	h.rows[table][k] = s
	for _, t := range slices.Concat(chain, pairs) {
		if t.above != table {
			continue
		}
		for _, child := range h.below[t.name][k.id] {
			if !h.rows[t.name][child].deleted {
				h.remove(t.name, child)
			}
		}
	}
}

// net returns how many rows of a table the client has added.
func (h *history) net(table string) (n int64) {
	for _, s := range h.rows[table] {
		if !s.deleted {
			n++
		}
	}
	return n
}
