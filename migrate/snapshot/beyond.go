package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
)

// BeyondError says that the donor has what no structure holds, such as rows, or lacks what new shards get by default, such as rights.
type BeyondError struct {
	Donor      shards.Number
	Has, Lacks []string // such as "rows in table users"
}

// Error names up to three of them.
func (e *BeyondError) Error() string {
	things, verb := e.Has, "has"
	if len(things) == 0 {
		things, verb = e.Lacks, "lacks"
	}
	text := fmt.Sprintf("shard %d %s %s", e.Donor, verb, strings.Join(things[:min(len(things), 3)], "; "))
	if more := len(e.Has) + len(e.Lacks) - min(len(things), 3); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + ", which a snapshot does not hold"
}

// beyondQuery describes what a schema ($1) has beyond its structure: rows, owners, rights, tablespaces, and labels. $2 are Kiloshard's relations. Files of
// tables with rows have a size, also after a DELETE.
const beyondQuery = `
WITH inside AS MATERIALIZED (
  SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace($1)
), rel AS MATERIALIZED (
  SELECT c.* FROM inside JOIN pg_class c ON c.oid = objid WHERE classid = 'pg_class'::regclass AND c.relname <> ALL ($2::name[])
), thing (name, kind, owner, acl) AS (
  SELECT 'the schema', 'n'::"char", nspowner, nspacl FROM pg_namespace WHERE oid = to_regnamespace($1)
  UNION ALL SELECT pg_describe_object('pg_class'::regclass, oid, 0), CASE relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, relowner, relacl FROM rel WHERE relkind <> 'c'
  UNION ALL SELECT pg_describe_object('pg_class'::regclass, a.attrelid, a.attnum), 'c'::"char", relowner, attacl FROM rel JOIN pg_attribute a ON a.attrelid = rel.oid WHERE attacl IS NOT NULL
  UNION ALL SELECT pg_describe_object('pg_proc'::regclass, oid, 0), 'f'::"char", proowner, proacl FROM inside JOIN pg_proc ON oid = objid WHERE classid = 'pg_proc'::regclass
  UNION ALL SELECT pg_describe_object('pg_type'::regclass, oid, 0), 'T'::"char", typowner, typacl FROM inside JOIN pg_type ON oid = objid WHERE classid = 'pg_type'::regclass AND typrelid = 0
  UNION ALL SELECT format('new objects of kind %s', defaclobjtype), 'c'::"char", defaclrole, defaclacl FROM inside JOIN pg_default_acl ON oid = objid WHERE classid = 'pg_default_acl'::regclass
)
SELECT replace(line, quote_ident($1) || '.', '') FROM (
  SELECT 'rows in ' || pg_describe_object('pg_class'::regclass, oid, 0) FROM rel WHERE relkind = 'r' AND pg_relation_size(oid) > 0
  UNION ALL
  SELECT format('%s of role %I', name, owner::regrole) FROM thing WHERE owner <> (SELECT oid FROM pg_roles WHERE rolname = current_user)
  UNION ALL
  SELECT format('%s granted to %s (%s)', name, CASE grantee WHEN 0 THEN 'public' WHEN owner THEN 'its owner' ELSE grantee::regrole::text END,
    string_agg(privilege_type || CASE WHEN is_grantable THEN ' with grant option' ELSE '' END, ', ' ORDER BY privilege_type))
  FROM thing, aclexplode(coalesce(acl, CASE WHEN kind <> 'c' THEN acldefault(kind, owner) END)) GROUP BY name, grantee, owner
  UNION ALL
  SELECT format('%s in tablespace %I', pg_describe_object('pg_class'::regclass, rel.oid, 0), spcname) FROM rel JOIN pg_tablespace s ON s.oid = reltablespace
  UNION ALL
  SELECT format('a security label of %s on %s', provider, pg_describe_object(classoid, objoid, objsubid)) FROM pg_seclabel JOIN inside ON classid = classoid AND objid = objoid
) b (line) ORDER BY 1`

// sequencesQuery writes a query that describes the sequences of a schema ($1) that are not at their start.
const sequencesQuery = `
SELECT coalesce(string_agg(format('SELECT %L FROM %s WHERE is_called OR last_value <> %s', 'values of sequence ' || c.relname, c.oid::regclass, q.seqstart), ' UNION ALL '), 'SELECT '''' WHERE false')
FROM pg_sequence q JOIN pg_class c ON c.oid = q.seqrelid WHERE c.relnamespace = to_regnamespace($1) AND c.relname <> ALL ($2::name[])`

// beyond reads what a schema has beyond its structure.
func beyond(ctx context.Context, conn *pgx.Conn, m *shards.Map, n shards.Number) ([]string, error) {
	schema := m.Schema(n)
	own, _ := drift.Toolkit(m)
	read := func(query string, args ...any) ([]string, error) {
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[string])
	}
	found, err := read(beyondQuery, schema, own)
	if err != nil {
		return nil, err
	}
	query, err := read(sequencesQuery, schema, own)
	if err != nil {
		return nil, err
	}
	used, err := read(query[0])
	return append(found, used...), err
}

// compareBeyond returns a [BeyondError] if the donor and a shard made from its structure differ in more than their numbers.
func compareBeyond(donor shards.Number, has []string, made shards.Number, gets []string) error {
	without := func(all []string, n shards.Number, some []string, other shards.Number) (left []string) {
		for _, line := range all {
			if !slices.Contains(some, line) && !slices.Contains(numbered(some, other), numbered([]string{line}, n)[0]) {
				left = append(left, line)
			}
		}
		return left
	}
	e := &BeyondError{Donor: donor, Has: without(has, donor, gets, made), Lacks: without(gets, made, has, donor)}
	if len(e.Has)+len(e.Lacks) == 0 {
		return nil
	}
	return e
}

// numbered returns lines with a mark in place of a shard's number.
func numbered(lines []string, n shards.Number) []string {
	var all drift.Structure
	for _, line := range lines {
		all = append(all, drift.Line{Text: line})
	}
	var texts []string
	for _, l := range all.Numbered(n) {
		texts = append(texts, l.Text)
	}
	return texts
}
