package provision

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
)

// definitions are what table entity_indexes of a shard says of package router/entities: the definitions by their names.
type definitions map[string]string

// findEntities returns the differences between the definitions of entities and their indexes in the shards that have the table. Most
// shards decide what is right.
func findEntities(ctx context.Context, s *hosts.Sessions, m *shards.Map) ([]Difference, error) {
	all := make([]map[string]definitions, len(m.Hosts())) // by schema, of each host
	if err := s.Each(func(i int, conn *pgx.Conn) (err error) {
		all[i], err = readDefinitions(ctx, conn, m, i)
		return err
	}); err != nil {
		return nil, err
	}
	most, count := definitions{}, map[[2]string]int{} // by name and definition
	for _, host := range all {
		for _, shard := range host {
			for name, definition := range shard {
				count[[2]string{name, definition}]++
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(count), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(b[1], a[1]))
	}) {
		most[key[0]] = key[1] // the last one is the most frequent
	}
	var differences []Difference
	for i, host := range all {
		for schema, shard := range host {
			for name, want := range most {
				found, has := shard[name]
				switch {
				case !has && name != "entities": // shards beyond the definition's number have none
					found = "definition of " + name + " is missing"
				case !has || found == want:
					continue
				default:
					found = "definition of " + name + " is " + found
				}
				differences = append(differences, Difference{KindEntities, m.Hosts()[i].Name, schema, found, want + ", as in most shards"})
			}
		}
	}
	return differences, nil
}

// readDefinitions returns the definitions of the shards of a host, by schema.
func readDefinitions(ctx context.Context, conn *pgx.Conn, m *shards.Map, host int) (map[string]definitions, error) {
	const query = `SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = 'entity_indexes' AND c.relkind = 'r' AND has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')
			AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname IN ('name', 'definition', 'retired') AND NOT a.attisdropped) = 3`
	rows, _ := conn.Query(ctx, query) // rows has the error
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for n := range m.All().All() {
		if m.HostIndex(n) == host {
			wanted[m.Schema(n)] = true
		}
	}
	schemas = slices.DeleteFunc(schemas, func(schema string) bool { return !wanted[schema] })
	found := map[string]definitions{}
	for some := range slices.Chunk(schemas, 256) {
		each := make([]string, len(some))
		for k, schema := range some {
			found[schema] = definitions{}
			each[k] = fmt.Sprintf("SELECT '%s'::text, name::text, definition::text FROM %s.entity_indexes WHERE definition <> '' AND NOT retired", schema, pgx.Identifier{schema}.Sanitize())
		}
		rows, _ := conn.Query(ctx, strings.Join(each, " UNION ALL "))
		var schema, name, definition string
		if _, err := pgx.ForEachRow(rows, []any{&schema, &name, &definition}, func() error {
			found[schema][name] = definition
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}
