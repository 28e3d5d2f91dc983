package provision

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// takeDirectory looks for the tables of a directory in the schemas that look like shards: their columns, and
// whether they have a primary key.
func (inv *inventory) takeDirectory(ctx context.Context, conn *pgx.Conn, pattern string) error {
	inv.directories = map[string]map[string]string{}
	const query = `
		SELECT n.nspname, c.relname, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum) ||
			CASE WHEN EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p') THEN '' ELSE ', no primary key' END
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE n.nspname ~ $1 AND c.relname = ANY ($2) AND c.relkind = 'r'
		GROUP BY n.nspname, c.oid, c.relname`
	rows, err := conn.Query(ctx, query, pattern, slices.Sorted(maps.Keys(sql.DirectoryTables)))
	if err != nil {
		return err
	}
	var schema, table, columns string
	_, err = pgx.ForEachRow(rows, []any{&schema, &table, &columns}, func() error {
		if inv.directories[schema] == nil {
			inv.directories[schema] = map[string]string{}
		}
		inv.directories[schema][table] = columns
		return nil
	})
	return err
}

// hasDirectory reports whether a shard has the tables, right or wrong, if the map wants them.
func (inv *inventory) hasDirectory(m *shards.Map, n shards.Number) bool {
	return !m.HasDirectory() || len(inv.directories[m.Schema(n)]) == len(sql.DirectoryTables)
}

// directory compares the tables of a directory in a shard's schema on one host.
func (v *verification) directory(inv *inventory, n shards.Number) {
	if !v.m.HasDirectory() {
		return
	}
	schema := v.m.Schema(n)
	const object = ".kiloshard_directory"
	if inv.directories[schema][object[1:]] != "" && inv.stateOf(schema+object, v.present.directory) == old {
		v.old(inv, schema, "the directory", inv.versions[schema+object], v.present.directory)
		return
	}
	for table, want := range sql.DirectoryTables {
		switch found, ok := inv.directories[schema][table]; {
		case !ok:
			v.differ(KindDirectory, inv, schema, table+" is missing", "the table; kiloshard create makes it")
		case found != want:
			v.differ(KindDirectory, inv, schema, table+" has "+found, want)
		}
	}
}
