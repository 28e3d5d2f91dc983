package queries

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// place is what is known of where a row is: two rows with an equal place are in one shard.
type place struct {
	table   string // empty for the key itself
	columns string // of the table, unique together
	sets    string // their roots
}

// found is a place, and whether values say which one it is.
type found struct {
	place
	nodes []int
	what  string
}

// places returns the places of a row: its key, its unique keys, and the rows that it refers to.
func (a *analysis) places(r *row) []found {
	var all []found
	add := func(table tables.Name, columns, own []string) {
		f := found{what: fmt.Sprintf("by (%s) of %s", strings.Join(columns, ", "), table)}
		f.table, f.columns = table.String(), strings.Join(columns, "\x00")
		for _, column := range own {
			node, ok := r.columns[column]
			if !ok {
				return
			}
			f.nodes = append(f.nodes, node)
		}
		f.sets = fmt.Sprint(a.sets.roots(f.nodes))
		all = append(all, f)
	}
	way := r.plan.Way()
	if len(way.Links) == 0 {
		if node, ok := r.columns[way.Column]; ok {
			all = append(all, found{place: place{sets: fmt.Sprint(a.sets.of(node))}, nodes: []int{node}, what: "by " + way.Column})
		}
	}
	for _, key := range r.table.Keys {
		if !key.Computed && !key.Partial {
			add(r.table.Name, slices.Sorted(slices.Values(key.Columns)), slices.Sorted(slices.Values(key.Columns)))
		}
	}
	for _, f := range a.plan.Graph().Links() {
		if f.From != r.table.Name || r.plan.Crosses(f.Name) || !a.plan.Table(f.To).Is.Sharded() {
			continue
		}
		order := make([]int, len(f.Columns))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(x, y int) int { return strings.Compare(f.References[x], f.References[y]) })
		var own, referred []string
		for _, i := range order {
			own, referred = append(own, f.Columns[i]), append(referred, f.References[i])
		}
		add(f.To, referred, own)
	}
	return all
}

// verdict returns the class of the statement, and why.
func (a *analysis) verdict() (Class, string) {
	var sharded []*row
	left, undecided, reference := []string{}, []string{}, false
	for _, r := range a.rows {
		name := r.plan.Table.String()
		switch r.plan.Is {
		case adopt.Undecided:
			undecided = append(undecided, name)
		case adopt.Left:
			left = append(left, name)
		case adopt.Reference:
			reference = reference || r.written
		default:
			sharded = append(sharded, r)
			a.checkInsert(r)
		}
	}
	switch {
	case len(undecided) > 0:
		return Change, "the plan has not decided about " + listed(undecided)
	case len(a.changes) > 0:
		return Change, listed(a.changes)
	case len(sharded) > 0 && len(left) > 0:
		return Change, "it joins rows of shards with " + listed(left) + ", which is left behind"
	case len(sharded) > 0 && reference:
		return Change, "it writes a reference table from rows of shards"
	case len(a.unseen) > 0:
		return Unread, "it is not seen what this does: " + listed(a.unseen)
	case len(sharded) > 0:
		return a.locate(sharded)
	case reference:
		return Elsewhere, "it writes a reference table"
	case len(left) > 0:
		return Elsewhere, "its tables are left behind"
	}
	return Elsewhere, "no sharded table is in it"
}

// locate returns where the rows of sharded tables are.
func (a *analysis) locate(rows []*row) (Class, string) {
	group := make([]int, len(rows)) // rows in one shard have one number
	for i := range rows {
		group[i] = i
	}
	known := make([][]found, len(rows))
	first := map[place]int{}
	for i, r := range rows {
		known[i] = a.places(r)
		for _, f := range known[i] {
			other, seen := first[f.place]
			if !seen {
				first[f.place] = i
				continue
			}
			from, to := group[i], group[other]
			for n := range group {
				if group[n] == from {
					group[n] = to
				}
			}
		}
	}
	groups := map[int]bool{}
	for _, g := range group {
		groups[g] = true
	}
	if len(groups) > 1 {
		return CrossShard, "it joins rows that need not have one key: " + a.apart(rows, group)
	}
	var byRow, several string
	for _, all := range known {
		for _, f := range all {
			fixed, many := a.allFixed(f.nodes)
			switch {
			case !fixed:
			case many:
				several = f.what
			case f.table == "":
				return ByKey, f.what
			case byRow == "":
				byRow = f.what
			}
		}
	}
	if byRow != "" {
		return ByChain, byRow + ": a lookup finds the key"
	}
	if several != "" {
		return FanOut, "several keys or rows, " + several + a.merge()
	}
	written := ""
	if slices.ContainsFunc(rows, func(r *row) bool { return r.written }) {
		written = ", and writes there"
	}
	return FanOut, "it has no key, so it goes to all shards" + written + a.merge()
}

func (a *analysis) allFixed(nodes []int) (fixed, many bool) {
	for _, node := range nodes {
		one, several := a.sets.fixed(node)
		if !one {
			return false, false
		}
		many = many || several
	}
	return len(nodes) > 0, many
}

func (a *analysis) merge() string {
	if len(a.merges) == 0 {
		return ""
	}
	return "; the caller merges " + listed(a.merges)
}

// apart names the tables of each group.
func (a *analysis) apart(rows []*row, group []int) string {
	var names []string
	seen := map[int]bool{}
	for i, g := range group {
		if seen[g] {
			continue
		}
		seen[g] = true
		names = append(names, rows[i].plan.Table.String())
	}
	return strings.Join(names, " and ")
}

// listed returns the texts without those that are there twice.
func listed(texts []string) string {
	var once []string
	for _, t := range texts {
		if !slices.Contains(once, t) {
			once = append(once, t)
		}
	}
	return strings.Join(once, ", ")
}
