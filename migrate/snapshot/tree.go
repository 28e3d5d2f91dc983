package snapshot

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// partitionEdges order the statements that make a partitioned table and its partitions. A partition is attached (part -4) once it and its
// parent have all columns and checks, and before either has a key, an index or a trigger: what the parent then gets, the partition gets, or
// is attached to (part -5). A foreign key of the parent takes those of the partitions as its own, so these come first. One to a partitioned table
// needs a key that all partitions have.
const partitionEdges = `
	WITH RECURSIVE part (oid, parent) AS MATERIALIZED (
		SELECT i.inhrelid, i.inhparent FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE c.relispartition AND c.relkind IN ('r', 'p') AND c.oid = ANY ($1::oid[])
	), side (oid, of) AS MATERIALIZED (
		SELECT p.oid, o.oid FROM part p CROSS JOIN LATERAL (VALUES (p.oid), (p.parent)) o (oid)
	), attached (oid, parent) AS MATERIALIZED (
		SELECT i.inhrelid, i.inhparent FROM pg_inherits i JOIN pg_index x ON x.indexrelid = i.inhrelid JOIN part p ON p.oid = x.indrelid
	), line (index, class, object) AS MATERIALIZED (
		SELECT a.index, 'pg_class'::regclass::oid, a.index FROM (SELECT oid FROM attached UNION SELECT parent FROM attached) a (index)
		UNION ALL
		SELECT con.conindid, 'pg_constraint'::regclass, con.oid FROM pg_constraint con WHERE con.oid = ANY ($1::oid[]) AND con.contype IN ('p', 'u', 'x')
	), below (key, index) AS (
		SELECT con.oid, con.conindid FROM pg_constraint con WHERE con.oid = ANY ($1::oid[]) AND con.contype = 'f'
		UNION
		SELECT b.key, a.oid FROM below b JOIN attached a ON a.parent = b.index
	)
	SELECT 'pg_class'::regclass::oid, p.oid, -4, 'pg_class'::regclass::oid, a.attrelid, a.attnum::int FROM side p JOIN pg_attribute a ON a.attrelid = p.of AND a.attnum >= 0
	UNION ALL
	SELECT 'pg_class'::regclass, p.oid, -4, 'pg_class'::regclass, p.of, 0 FROM side p
	UNION ALL
	SELECT 'pg_class'::regclass, p.oid, -4, 'pg_constraint'::regclass, con.oid, 0 FROM side p JOIN pg_constraint con ON con.conrelid = p.of AND con.contype IN ('c', 'n')
	UNION ALL
	SELECT 'pg_constraint'::regclass, con.oid, 0, 'pg_class'::regclass, p.oid, -4 FROM side p JOIN pg_constraint con ON con.conrelid = p.of AND con.contype NOT IN ('c', 'n')
	UNION ALL
	SELECT 'pg_class'::regclass, x.indexrelid, 0, 'pg_class'::regclass, p.oid, -4 FROM side p JOIN pg_index x ON x.indrelid = p.of
	UNION ALL
	SELECT 'pg_trigger'::regclass, t.oid, 0, 'pg_class'::regclass, p.oid, -4 FROM side p JOIN pg_trigger t ON t.tgrelid = p.of
	UNION ALL
	SELECT 'pg_class'::regclass, a.oid, -5, l.class, l.object, 0 FROM attached a CROSS JOIN LATERAL (VALUES (a.oid), (a.parent)) o (oid) JOIN line l ON l.index = o.oid
	UNION ALL
	SELECT 'pg_constraint'::regclass, b.key, 0, 'pg_class'::regclass, b.index, -5 FROM below b JOIN attached a ON a.oid = b.index
	UNION ALL
	SELECT 'pg_constraint'::regclass, up.oid, 0, 'pg_constraint'::regclass, con.oid, 0
	FROM pg_constraint con JOIN pg_constraint up ON up.oid = con.conparentid AND up.conrelid <> con.conrelid WHERE con.oid = ANY ($1::oid[]) AND con.contype = 'f'`

// inheritanceEdges order the statements that make tables with INHERITS. Children are there before any column, and the columns of a parent add
// theirs: a column is made by that of the first parent, and its parent's, unless it is the child's own as well. So that the columns of each table
// are in their order, what makes one needs what makes the one before it. A column or a check that is also the child's own comes before those of the
// parents, which are merged with it.
const inheritanceEdges = `
	WITH RECURSIVE child (oid, parent, nth) AS MATERIALIZED (
		SELECT i.inhrelid, i.inhparent, i.inhseqno FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE NOT c.relispartition AND c.relkind = 'r' AND c.oid = ANY ($1::oid[])
	), col (rel, number, name, own) AS MATERIALIZED (
		SELECT a.attrelid, a.attnum, a.attname, a.attislocal FROM pg_attribute a
		WHERE a.attrelid IN (SELECT oid FROM child UNION SELECT parent FROM child) AND a.attnum > 0 AND NOT a.attisdropped
	), first AS MATERIALIZED (
		SELECT DISTINCT ON (c.rel, c.number) c.rel, c.number, p.rel AS parent, p.number AS parent_number
		FROM col c JOIN child i ON i.oid = c.rel JOIN col p ON p.rel = i.parent AND p.name = c.name WHERE NOT c.own ORDER BY c.rel, c.number, i.nth
	), made (rel, number, by, by_number) AS (
		SELECT rel, number, rel, number FROM col WHERE own
		UNION
		SELECT f.rel, f.number, m.by, m.by_number FROM made m JOIN first f ON f.parent = m.rel AND f.parent_number = m.number
	), up (con, parent) AS (
		SELECT c.oid, u.oid FROM child i JOIN pg_constraint c ON c.conrelid = i.oid
		JOIN pg_constraint u ON u.conrelid = i.parent AND u.conname = c.conname AND u.contype = c.contype WHERE c.contype IN ('c', 'n')
		UNION
		SELECT p.con, u.oid FROM up p JOIN pg_constraint c ON c.oid = p.parent JOIN child i ON i.oid = c.conrelid
		JOIN pg_constraint u ON u.conrelid = i.parent AND u.conname = c.conname AND u.contype = c.contype
	), column_edge (rel, number, needs, needs_number) AS (
		SELECT by, by_number, lag(by) OVER before, lag(by_number) OVER before FROM made WINDOW before AS (PARTITION BY rel ORDER BY number)
		UNION ALL
		SELECT m.by, m.by_number, o.by, o.by_number FROM child i JOIN col c ON c.rel = i.oid JOIN col p ON p.rel = i.parent AND p.name = c.name
		JOIN made o ON o.rel = c.rel AND o.number = c.number JOIN made m ON m.rel = p.rel AND m.number = p.number
		UNION ALL
		SELECT rel, number, by, by_number FROM made
		UNION ALL
		SELECT c.rel, c.number, i.oid, 0 FROM col c JOIN child i ON i.parent = c.rel
	)
	SELECT 'pg_class'::regclass::oid, rel, number::int, 'pg_class'::regclass::oid, needs, needs_number::int FROM column_edge WHERE (rel, number) <> (needs, needs_number)
	UNION ALL
	SELECT 'pg_constraint'::regclass, CASE WHEN c.conislocal THEN up.parent ELSE up.con END, 0, 'pg_constraint'::regclass, CASE WHEN c.conislocal THEN up.con ELSE up.parent END, 0
	FROM up JOIN pg_constraint c ON c.oid = up.con`

// treeEdges reads what the lines of tables with partitions and children need of each other.
func treeEdges(ctx context.Context, conn *pgx.Conn, objects []uint32) ([]edge, error) {
	partitions, err := queryEdges(ctx, conn, partitionEdges, objects)
	if err != nil {
		return nil, err
	}
	children, err := queryEdges(ctx, conn, inheritanceEdges, objects)
	return append(partitions, children...), err
}
