package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Tables selects tables of a schema: those whose pg_class.relpersistence is among the letters.
type Tables string

// Changes of logged tables are replicated, and those of unlogged ones are not.
const (
	Logged   Tables = "p"
	Unlogged Tables = "u"
	All      Tables = "pu"
)

// table is a table of a schema, with its columns in their order.
type table struct {
	Name    string
	Columns []string
	Types   []uint32  // OIDs; types that are not Postgres's own have other OIDs on another host
	names   []string  // columns with names of objects, such as a regclass
	schema  [2]string // the table's schema, and the schema that replaces it when names are compared
}

// readTables returns the tables of a schema. Names of its objects are compared as if the schema had the name as.
func readTables(ctx context.Context, conn Querier, schema, as string, which Tables) ([]table, error) {
	const query = `
		SELECT c.relname::text, coalesce(array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attnum > 0), '{}'),
			coalesce(array_agg(a.atttypid ORDER BY a.attnum) FILTER (WHERE a.attnum > 0), '{}')
		FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND position(c.relpersistence IN $2) > 0 GROUP BY c.oid ORDER BY c.relname COLLATE "C"`
	found, err := conn.Query(ctx, query, schema, which)
	if err != nil {
		return nil, err
	}
	var all []table
	var t table
	_, err = pgx.ForEachRow(found, []any{&t.Name, &t.Columns, &t.Types}, func() error {
		all = append(all, table{Name: t.Name, Columns: slices.Clone(t.Columns), Types: slices.Clone(t.Types), schema: [2]string{schema, as}})
		return nil
	})
	if err != nil || schema == as {
		return all, err
	}
	parts, err := Parts(ctx, conn, schema, Named)
	for _, p := range parts {
		if i := slices.IndexFunc(all, func(t table) bool { return t.Name == p.Table }); i >= 0 {
			all[i].names = append(all[i].names, p.Column)
		}
	}
	return all, err
}

// common returns a table with the columns that another table has as well, and that are hashed alike.
func (t table) common(other table) table {
	common := table{Name: t.Name, names: t.names, schema: t.schema}
	for i, column := range t.Columns {
		if k := slices.Index(other.Columns, column); k >= 0 && hashes[other.Types[k]] == hashes[t.Types[i]] {
			common.Columns, common.Types = append(common.Columns, column), append(common.Types, t.Types[i])
		}
	}
	return common
}

// The ways to hash a column: two values have the same hash only if their bytes are the same, except for one pair in
// 2^32. Hashing the text of the whole row would take five times as long for a few numbers and words.
const (
	hashText  = `hashtextextended(%[1]s::text COLLATE "C", %[2]d)`
	hashBytes = `hash_record_extended(ROW(%[1]s), %[2]d)` // with the type's own hash function
	hashAny   = `hashtextextended(ROW(%[1]s)::text COLLATE "C", %[2]d)`
	// Names of objects in the table's schema count as names in the other schema, and those in the other one as different.
	hashNames = `hashtextextended(replace(replace(ROW(%[1]s)::text, '%[4]s.', '?.'), '%[3]s', '%[4]s') COLLATE "C", %[2]d)`
)

// hashes are the ways for types whose own hash, or cast to text, distinguishes all values with different bytes. The hash of
// numeric does not, for which 1.0 equals 1.00, nor does the cast of character(n), which drops blanks.
var hashes = map[uint32]string{
	pgtype.Int2OID:        `hashint2extended(%[1]s, %[2]d)`,
	pgtype.Int4OID:        `hashint4extended(%[1]s, %[2]d)`,
	pgtype.Int8OID:        `hashint8extended(%[1]s, %[1]s # %[2]d)`, // hashint8extended folds 64 bits into 32
	pgtype.UUIDOID:        `uuid_hash_extended(%[1]s, %[2]d)`,
	pgtype.TextOID:        hashText,
	pgtype.VarcharOID:     hashText,
	pgtype.NumericOID:     hashText,
	pgtype.Float4OID:      hashText,
	pgtype.Float8OID:      hashText,
	pgtype.JSONOID:        hashText,
	pgtype.JSONBOID:       hashText,
	pgtype.DateOID:        hashBytes,
	pgtype.TimestampOID:   hashBytes,
	pgtype.TimestamptzOID: hashBytes,
}

// hash returns an expression for the hash of a row, which is named kiloshard_row. Each column has its own seed, so that
// a row with two values exchanged has another hash.
func (t table) hash() string {
	parts := []string{"0::bigint"}
	for i, column := range t.Columns {
		how, ok := hashes[t.Types[i]]
		if !ok {
			how = hashAny
		}
		if slices.Contains(t.names, column) {
			how = hashNames
		}
		parts = append(parts, fmt.Sprintf("coalesce("+how+", %[2]d)", pgx.Identifier{"kiloshard_row", column}.Sanitize(), i+1, t.schema[0], t.schema[1]))
	}
	return strings.Join(parts, " # ")
}
