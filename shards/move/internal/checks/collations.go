package checks

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// collation is a collation of a shard's columns, other than the database's.
type collation struct {
	Name    string
	Kind    string // provider and locale
	Version string // of the provider; "-" if it has none
	Strict  bool   // no two texts that differ are equal
}

// collationQuery reads the collations of the columns of a schema ($1), and those with some names ($2).
const collationQuery = `
SELECT DISTINCT format('%I.%I', n.nspname, o.collname) AS name,
  concat_ws(' ', CASE o.collprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE o.collprovider::text END,
    coalesce(o.collcollate, to_jsonb(o) ->> 'colllocale', to_jsonb(o) ->> 'colliculocale')),
  coalesce(pg_collation_actual_version(o.oid), '-'), o.collisdeterministic
FROM pg_collation o JOIN pg_namespace n ON n.oid = o.collnamespace
WHERE o.collprovider <> 'd' AND n.nspname <> $1 AND (format('%I.%I', n.nspname, o.collname) = ANY ($2) OR o.oid IN (
  SELECT a.attcollation FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = to_regnamespace($1) AND a.attnum > 0 AND NOT a.attisdropped))
ORDER BY name`

func collations(ctx context.Context, conn *pgx.Conn, schema string, names []string) ([]collation, error) {
	rows, err := conn.Query(ctx, collationQuery, schema, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[collation])
}

// compareCollations finds collations that are missing on a target, or differ there.
func (s *Shard) compareCollations(ctx context.Context, conn *pgx.Conn, f *Found) error {
	names := make([]string, 0, len(s.collations))
	for _, c := range s.collations {
		names = append(names, c.Name)
	}
	here, err := collations(ctx, conn, s.Schema, names)
	if err != nil {
		return err
	}
	found := map[string]collation{}
	for _, c := range here {
		found[c.Name] = c
	}
	for _, want := range s.collations {
		switch got, there := found[want.Name]; {
		case !there:
			f.problem("collation %s is missing", want.Name)
		case got.Strict != want.Strict:
			f.problem("collation %s has deterministic = %t, on the source %t: expected the same, so that the same texts are equal", want.Name, got.Strict, want.Strict)
		case got.Kind != want.Kind:
			f.note("collation %s is %s, on the source %s: its order may differ; indexes are made anew", want.Name, got.Kind, want.Kind)
		case got.Version != want.Version:
			f.note("collation %s is of version %s, on the source of %s: its order may differ; indexes are made anew", want.Name, got.Version, want.Version)
		}
	}
	return nil
}
