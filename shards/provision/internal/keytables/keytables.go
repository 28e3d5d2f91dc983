// Package keytables has the tables that a strategy keeps in each shard: the entries of a directory, and counts of keys.
package keytables

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/sql"
)

// Wanted are the tables that a map wants in each shard. A strategy that allocates no keys has none.
type Wanted struct {
	columns   map[string]string // by table
	versioned string            // the table whose comment holds the version
	version   string
	script    func(number int, schema string) string
}

// For returns the tables of the map's strategy.
func For(m *shards.Map) Wanted {
	var w Wanted
	switch {
	case m.HasDirectory():
		w = Wanted{columns: sql.DirectoryTables, versioned: "kiloshard_directory", script: sql.Directory}
	case m.Allocates():
		w = Wanted{columns: sql.UsageTables, versioned: "kiloshard_usage", script: sql.Usage}
	default:
		return w
	}
	w.version = sql.Version(w.script(0, m.Schema(0)))
	return w
}

// Names returns the names of the tables, sorted.
func (w Wanted) Names() []string { return slices.Sorted(maps.Keys(w.columns)) }

// Script returns the script that creates the tables of a shard.
func (w Wanted) Script(n shards.Number, schema string) string {
	if w.script == nil {
		return ""
	}
	return w.script(int(n), schema)
}

// Found are the columns of tables, by schema and table.
type Found map[string]map[string]string

// Read describes the columns of the tables in schemas whose names match a pattern, and a missing primary key.
func Read(ctx context.Context, conn *pgx.Conn, pattern string) (Found, error) {
	const query = `
		SELECT n.nspname, c.relname, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum) ||
			CASE WHEN EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p') THEN '' ELSE ', no primary key' END
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE n.nspname ~ $1 AND c.relname = ANY ($2) AND c.relkind = 'r'
		GROUP BY n.nspname, c.oid, c.relname`
	rows, _ := conn.Query(ctx, query, pattern, slices.Sorted(maps.Keys(sql.DirectoryTables))) // rows has the error
	found := Found{}
	var schema, table, columns string
	_, err := pgx.ForEachRow(rows, []any{&schema, &table, &columns}, func() error {
		if found[schema] == nil {
			found[schema] = map[string]string{}
		}
		found[schema][table] = columns
		return nil
	})
	return found, err
}

// State compares the tables of a shard by their names and their version.
func (w Wanted) State(found Found, versions catalog.Versions, schema string) catalog.State {
	for table := range w.columns {
		if found[schema][table] == "" {
			return catalog.Missing
		}
	}
	if w.versioned == "" {
		return catalog.Current
	}
	return versions.State(schema+"."+w.versioned, w.version)
}

// Compare adds the differences of the tables of a shard.
func (w Wanted) Compare(l *difference.List, found Found, versions catalog.Versions, schema string) {
	object := schema + "." + w.versioned
	if found[schema][w.versioned] != "" && versions.State(object, w.version) == catalog.Old {
		l.AddOld(schema, w.versioned, versions[object], w.version)
		return
	}
	for table, want := range w.columns {
		switch have, ok := found[schema][table]; {
		case !ok:
			l.Add(difference.Directory, schema, table+" is missing", "the table; kiloshard create creates it")
		case have != want:
			l.Add(difference.Directory, schema, table+" has "+have, want)
		}
	}
}
