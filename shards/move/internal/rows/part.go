package rows

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Part is a value whose built-in type has a meaning only in its database: an OID, a name for an OID, or a position. It
// is the value of a column, or part of it, in arrays, composites, ranges and domains.
type Part struct {
	Table, Column string
	Type          string // of the column
	Of            string // of the part, such as regclass
	From, Value   string // SELECT Value FROM From reads all parts of all rows; some may be NULL
}

// Named are the types of parts whose text is the name of an object.
const Named = `{regclass,regtype,regproc,regprocedure,regoper,regoperator,regcollation,regconfig,regdictionary,regnamespace,regrole,aclitem}`

// Numbers are the types of the other parts.
const Numbers = `{oid,xid,xid8,cid,tid,pg_lsn,pg_snapshot,txid_snapshot}`

// Parts returns the parts in all tables of a schema, by the catalogs. of is a set of types: [Named] or [Numbers].
func Parts(ctx context.Context, conn Querier, schema, of string) ([]Part, error) {
	const query = `
		WITH RECURSIVE part (rel, attnum, type, depth, source, value) AS (
			SELECT c.oid, a.attnum, a.atttypid, 1, format('ONLY %I.%I AS kiloshard_row', $1::text, c.relname), format('kiloshard_row.%I', a.attname)
			FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
			WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r'
			UNION ALL
			SELECT p.rel, p.attnum, inside.type, p.depth + 1, p.source || inside.more, inside.value
			FROM part p JOIN pg_type t ON t.oid = p.type CROSS JOIN LATERAL (
				SELECT t.typbasetype, '', p.value WHERE t.typtype = 'd'
				UNION ALL
				SELECT t.typelem, format(' CROSS JOIN LATERAL (SELECT kiloshard_part FROM unnest(%s) AS kiloshard_part) AS p%s (v)', p.value, p.depth), format('p%s.v', p.depth)
				WHERE t.typsubscript = 'array_subscript_handler'::regproc
				UNION ALL
				SELECT r.rngtypid, format(' CROSS JOIN LATERAL (SELECT kiloshard_part FROM unnest(%s) AS kiloshard_part) AS p%s (v)', p.value, p.depth), format('p%s.v', p.depth)
				FROM pg_range r WHERE r.rngmultitypid = t.oid
				UNION ALL
				SELECT r.rngsubtype, format(' CROSS JOIN LATERAL (SELECT kiloshard_part FROM unnest(ARRAY[lower(%s), upper(%1$s)]) AS kiloshard_part) AS p%s (v)', p.value, p.depth), format('p%s.v', p.depth)
				FROM pg_range r WHERE r.rngtypid = t.oid
				UNION ALL
				SELECT f.atttypid, '', format('(%s).%I', p.value, f.attname) FROM pg_attribute f WHERE f.attrelid = t.typrelid AND f.attnum > 0 AND NOT f.attisdropped
			) inside (type, more, value)
		)
		SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), t.typname::text, p.source, p.value
		FROM part p JOIN pg_type t ON t.oid = p.type AND t.typnamespace = 'pg_catalog'::regnamespace AND t.typname = ANY ($2::text::text[])
		JOIN pg_class c ON c.oid = p.rel JOIN pg_attribute a ON a.attrelid = p.rel AND a.attnum = p.attnum
		ORDER BY 1, a.attnum, p.depth, p.value`
	found, err := conn.Query(ctx, query, schema, of)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[Part])
}
