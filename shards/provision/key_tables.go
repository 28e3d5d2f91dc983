package provision

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// keyTables are the tables that a strategy has in each shard.
type keyTables struct {
	columns map[string]string // by name
	marked  string            // the one whose comment holds the version
	script  func(number int, schema string) string
}

// keyTablesOf returns those of the map's strategy, which are none without an allocation.
func keyTablesOf(m *shards.Map) keyTables {
	switch {
	case m.HasDirectory():
		return keyTables{sql.DirectoryTables, "kiloshard_directory", sql.Directory}
	case m.Allocates():
		return keyTables{sql.UsageTables, "kiloshard_usage", sql.Usage}
	}
	return keyTables{}
}

// takeKeyTables looks for the tables of a strategy in the schemas that look like shards: their columns, and
// whether they have a primary key.
func (inv *inventory) takeKeyTables(ctx context.Context, conn *pgx.Conn, pattern string) error {
	inv.keyTables = map[string]map[string]string{}
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
		if inv.keyTables[schema] == nil {
			inv.keyTables[schema] = map[string]string{}
		}
		inv.keyTables[schema][table] = columns
		return nil
	})
	return err
}

// hasKeyTables reports whether a shard has the tables, right or wrong, that the map's strategy wants.
func (inv *inventory) hasKeyTables(m *shards.Map, n shards.Number) bool {
	for table := range keyTablesOf(m).columns {
		if inv.keyTables[m.Schema(n)][table] == "" {
			return false
		}
	}
	return true
}

// keyTables compares the tables of the strategy in a shard's schema on one host.
func (v *verification) keyTables(inv *inventory, n shards.Number) {
	schema, tables := v.m.Schema(n), keyTablesOf(v.m)
	object := schema + "." + tables.marked
	if inv.keyTables[schema][tables.marked] != "" && inv.stateOf(object, v.present.keyTables) == old {
		v.old(inv, schema, tables.marked, inv.versions[object], v.present.keyTables)
		return
	}
	for table, want := range tables.columns {
		switch found, ok := inv.keyTables[schema][table]; {
		case !ok:
			v.differ(KindDirectory, inv, schema, table+" is missing", "the table; kiloshard create creates it")
		case found != want:
			v.differ(KindDirectory, inv, schema, table+" has "+found, want)
		}
	}
}
