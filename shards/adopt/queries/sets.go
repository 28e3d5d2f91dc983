package queries

import "slices"

// sets are sets of columns and values that are equal in all rows that a statement touches.
type sets struct{ all []set }

// set is one node: a column of a table in the statement, or a value.
type set struct {
	parent int
	value  string // of a constant or a parameter; empty for none
	many   bool   // one of several values
	depth  int    // of the outermost query that has a column in it

	isValue bool // the node was added as a value
	isWhole bool // the node was added as a column of whole numbers
}

// innermost is the depth of values: deeper than any query.
const innermost = 1 << 30

// add returns a new node.
func (s *sets) add(value string, depth int) int {
	s.all = append(s.all, set{parent: len(s.all), value: value, depth: depth, isValue: value != ""})
	return len(s.all) - 1
}

// of returns the root of the set that a node is in.
func (s *sets) of(node int) int {
	for s.all[node].parent != node {
		node = s.all[node].parent
	}
	return node
}

// join makes two sets one.
func (s *sets) join(a, b int) {
	a, b = s.of(a), s.of(b)
	if a == b {
		return
	}
	into, from := &s.all[a], s.all[b]
	s.all[b].parent = a
	into.depth = min(into.depth, from.depth)
	switch {
	case into.value == "" && !into.many:
		into.value, into.many = from.value, from.many
	case from.value != "": // the single value counts
		into.value, into.many = from.value, false
	}
}

// fixed reports whether the set of a node has a value, and whether it is one of several.
func (s *sets) fixed(node int) (fixed, many bool) {
	root := s.all[s.of(node)]
	return root.value != "" || root.many, root.value == "" && root.many
}

// roots returns the roots of nodes.
func (s *sets) roots(nodes []int) []int {
	roots := slices.Clone(nodes)
	for i, n := range roots {
		roots[i] = s.of(n)
	}
	return roots
}
