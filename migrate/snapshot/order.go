package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
)

// thing is an object or a column, as in pg_depend.
type thing struct {
	class, object uint32
	part          int32
}

// edge says that one thing needs another.
type edge struct{ from, to thing }

// inOrder returns the structure in an order in which each line comes after those that it needs, and the indexes of these. Usually that
// is the order of ranks, and within a rank that of OIDs, in which the objects were made.
func inOrder(ctx context.Context, conn *pgx.Conn, structure drift.Structure) (ordered drift.Structure, needed [][]int, err error) {
	lines := slices.Clone(structure)
	slices.SortFunc(lines, func(a, b drift.Line) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Text, b.Text))
	})
	needs, err := needsOf(ctx, conn, lines)
	if err != nil {
		return nil, nil, err
	}
	// Repeatedly take the first line whose needs are all made.
	made := make([]bool, len(lines))
	at := make([]int, len(lines)) // where it is in the order
	for len(ordered) < len(lines) {
		next := slices.IndexFunc(needs, func(needed []int) bool {
			return needed != nil && !slices.ContainsFunc(needed, func(i int) bool { return !made[i] })
		})
		if next < 0 {
			first := slices.IndexFunc(needs, func(needed []int) bool { return needed != nil })
			return nil, nil, fmt.Errorf("%s is part of a cycle of dependencies: expected an order in which to make them", lines[first].Key)
		}
		for i, n := range needs[next] {
			needs[next][i] = at[n]
		}
		at[next] = len(ordered)
		ordered, needed = append(ordered, lines[next]), append(needed, needs[next])
		made[next], needs[next] = true, nil
	}
	return ordered, needed, nil
}

// needsOf returns, for each line, the indexes of the lines that it needs.
func needsOf(ctx context.Context, conn *pgx.Conn, lines drift.Structure) ([][]int, error) {
	at := map[thing]int{}
	columns := map[thing][]int{} // by table, in order
	var objects []uint32
	for i, l := range lines {
		at[thing{l.Class, l.Object, l.Part}] = i
		objects = append(objects, l.Object)
		if l.Part > 0 {
			table := thing{class: l.Class, object: l.Object}
			columns[table] = append(columns[table], i)
		}
	}
	needs := make([][]int, len(lines))
	for i, l := range lines {
		needs[i] = []int{}
		if base, ok := at[thing{class: l.Class, object: l.Object}]; ok && l.Part != 0 {
			needs[i] = append(needs[i], base) // a column needs its table
		}
	}
	for _, numbers := range columns {
		for i := 1; i < len(numbers); i++ {
			needs[numbers[i]] = append(needs[numbers[i]], numbers[i-1])
		}
	}
	edges, err := readEdges(ctx, conn, objects)
	if err != nil {
		return nil, err
	}
	tree, err := treeEdges(ctx, conn, objects)
	if err != nil {
		return nil, err
	}
	edges = append(edges, tree...)
	for _, e := range edges {
		from, ok := at[e.from]
		if !ok {
			continue
		}
		to, ok := at[e.to]
		if !ok { // the columns of views have no lines
			to, ok = at[thing{class: e.to.class, object: e.to.object}]
		}
		if ok && to != from {
			needs[from] = append(needs[from], to)
		}
		// A line that needs a whole table needs its columns, unless it is one of these.
		if whole := columns[e.to]; e.from.object != e.to.object && e.from.part == 0 && lines[from].Rank >= 60 {
			needs[from] = append(needs[from], whole...)
		}
	}
	return needs, nil
}

// readEdges reads the dependencies of objects. It replaces a default by its column, a view's rule by the view, the row type
// of a table by the table, an array type by its element type, and the index of a constraint by the constraint. It leaves
// out the dependency of an owned sequence on its column, since the column needs the sequence, and those of what partitions have on what made it.
func readEdges(ctx context.Context, conn *pgx.Conn, objects []uint32) ([]edge, error) {
	const query = `
		WITH thing AS MATERIALIZED (
			SELECT 'pg_attrdef'::regclass::oid, d.oid, 0, 'pg_class'::regclass::oid, d.adrelid, d.adnum::int FROM pg_attrdef d WHERE d.adrelid = ANY ($1::oid[])
			UNION ALL
			SELECT 'pg_rewrite'::regclass, r.oid, 0, 'pg_class'::regclass, r.ev_class, 0 FROM pg_rewrite r WHERE r.ev_class = ANY ($1::oid[]) AND r.rulename = '_RETURN'
			UNION ALL
			SELECT 'pg_type'::regclass, t.oid, 0, 'pg_class'::regclass, t.typrelid, 0 FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid AND c.relkind <> 'c' WHERE t.typrelid = ANY ($1::oid[])
			UNION ALL
			SELECT 'pg_type'::regclass, t.typarray, 0, 'pg_type'::regclass, t.oid, 0 FROM pg_type t WHERE t.oid = ANY ($1::oid[]) AND t.typarray <> 0
			UNION ALL
			SELECT 'pg_type'::regclass, t.typarray, 0, 'pg_class'::regclass, t.typrelid, 0 FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid AND c.relkind <> 'c' WHERE t.typrelid = ANY ($1::oid[]) AND t.typarray <> 0
			UNION ALL
			SELECT 'pg_class'::regclass, c.oid, 0, 'pg_type'::regclass, c.reltype, 0 FROM pg_class c WHERE c.reltype = ANY ($1::oid[]) AND c.relkind = 'c'
			UNION ALL
			SELECT 'pg_class'::regclass, con.conindid, 0, 'pg_constraint'::regclass, con.oid, 0 FROM pg_constraint con WHERE con.oid = ANY ($1::oid[]) AND con.contype IN ('p', 'u', 'x')
		), stands (class, object, part, for_class, for_object, for_part) AS (TABLE thing), needs AS MATERIALIZED (
			SELECT d.classid, d.objid, d.objsubid, d.refclassid, d.refobjid, d.refobjsubid FROM pg_depend d
			WHERE (d.objid = ANY ($1::oid[]) OR d.objid IN (SELECT object FROM stands)) AND d.refclassid <> 'pg_namespace'::regclass AND d.deptype NOT IN ('P', 'S')
				AND NOT (d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND d.objid IN (SELECT seqrelid FROM pg_sequence))
			UNION ALL -- a partitioned table is made with its columns
			SELECT 'pg_class'::regclass, c.oid, 0, d.refclassid, d.refobjid, d.refobjsubid
			FROM pg_class c LEFT JOIN pg_attrdef f ON f.adrelid = c.oid
			JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid > 0 OR d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
			WHERE c.oid = ANY ($1::oid[]) AND c.relkind = 'p' AND d.refobjid <> c.oid
		)
		SELECT coalesce(f.for_class, d.classid), coalesce(f.for_object, d.objid), coalesce(f.for_part, d.objsubid),
			coalesce(t.for_class, d.refclassid), coalesce(t.for_object, d.refobjid), coalesce(t.for_part, d.refobjsubid)
		FROM needs d
		LEFT JOIN stands f ON f.class = d.classid AND f.object = d.objid
		LEFT JOIN stands t ON t.class = d.refclassid AND t.object = d.refobjid
		WHERE d.classid <> 'pg_class'::regclass OR f.for_class IS DISTINCT FROM 'pg_constraint'::regclass`
	return queryEdges(ctx, conn, query, objects)
}

// queryEdges returns the edges that a query finds among objects.
func queryEdges(ctx context.Context, conn *pgx.Conn, query string, objects []uint32) ([]edge, error) {
	rows, err := conn.Query(ctx, query, objects)
	if err != nil {
		return nil, err
	}
	var e edge
	var edges []edge
	_, err = pgx.ForEachRow(rows, []any{&e.from.class, &e.from.object, &e.from.part, &e.to.class, &e.to.object, &e.to.part}, func() error {
		edges = append(edges, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("dependencies of its structure: %w", err)
	}
	return edges, nil
}
