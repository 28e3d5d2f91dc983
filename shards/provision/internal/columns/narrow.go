package columns

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
)

// Narrow is a column of a shard that gets IDs, and has a type that cannot hold all of them.
type Narrow struct{ Schema, Found string }

// ReadNarrow finds columns by the catalog: those whose default is next_id(), and those whose foreign key refers to such
// a column, or to one that refers to it. An integer overflows; real and double precision round without an error.
func ReadNarrow(ctx context.Context, conn *pgx.Conn, pattern string) ([]Narrow, error) {
	const query = `
		WITH RECURSIVE shard AS MATERIALIZED (SELECT oid, nspname FROM pg_namespace WHERE nspname ~ $1),
		made (relation, number) AS MATERIALIZED (
			SELECT DISTINCT d.adrelid, d.adnum
			FROM pg_depend df
			JOIN pg_proc f ON f.oid = df.refobjid AND f.proname = 'next_id'
			JOIN shard fs ON fs.oid = f.pronamespace
			JOIN pg_attrdef d ON d.oid = df.objid
			WHERE df.classid = 'pg_attrdef'::regclass AND df.refclassid = 'pg_proc'::regclass
			  AND pg_get_expr(d.adbin, d.adrelid) ~ '^\(?([a-z0-9_"]+\.)?next_id\([^()]*\)\)?(::[a-z ]+)?$' -- and not a part of it
		),
		keys AS MATERIALIZED (
			SELECT k.conrelid AS relation, x.own AS number, k.confrelid AS other, x.other AS other_number
			FROM pg_constraint k
			JOIN shard s ON s.oid = k.connamespace
			CROSS JOIN LATERAL unnest(k.conkey, k.confkey) x (own, other)
			WHERE k.contype = 'f' AND k.conparentid = 0
		),
		ids (relation, number, refers, refers_number) AS (
			SELECT relation, number, NULL::oid, NULL::int2 FROM made
			UNION
			SELECT k.relation, k.number, k.other, k.other_number FROM keys k JOIN ids i ON i.relation = k.other AND i.number = k.other_number
		)
		SELECT n.nspname, format('%I.%I is %s, and ', c.relname, a.attname, format_type(a.atttypid, a.atttypmod)) ||
			CASE WHEN i.refers IS NULL THEN 'its default is an ID'
			ELSE format('refers to %I.%I, which is an ID', (SELECT relname FROM pg_class WHERE oid = i.refers),
				(SELECT attname FROM pg_attribute WHERE attrelid = i.refers AND attnum = i.refers_number)) END
		FROM ids i
		JOIN pg_class c ON c.oid = i.relation
		JOIN shard n ON n.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = i.relation AND a.attnum = i.number
		JOIN pg_type t ON t.oid = a.atttypid
		WHERE coalesce(nullif(t.typbasetype, 0), t.oid) IN ('int2'::regtype, 'int4'::regtype, 'float4'::regtype, 'float8'::regtype)`
	rows, _ := conn.Query(ctx, query, pattern) // rows has the error
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Narrow])
}

// Compare adds the column as a difference.
func (c Narrow) Compare(l *difference.List) {
	l.Add(difference.Column, c.Schema, c.Found, "bigint, since an ID has 64 bits")
}
