package extensions

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Installed are the extensions of a host, by name.
type Installed map[string]extension

type extension struct{ schema, version string }

// Read returns the installed extensions that the map names, and those in schemas whose names match a pattern.
func Read(ctx context.Context, conn *pgx.Conn, m *shards.Map, pattern string) (Installed, error) {
	const query = `
		SELECT x.extname::text, n.nspname::text, x.extversion FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace
		WHERE x.extname = ANY ($1) OR n.nspname ~ $2`
	rows, _ := conn.Query(ctx, query, Names(m), pattern) // rows has the error
	installed := Installed{}
	var name string
	var found extension
	_, err := pgx.ForEachRow(rows, []any{&name, &found.schema, &found.version}, func() error {
		installed[name] = found
		return nil
	})
	return installed, err
}

// Names returns the names of the map's extensions.
func Names(m *shards.Map) []string {
	names := make([]string, len(m.Extensions()))
	for i, e := range m.Extensions() {
		names[i] = e.Name
	}
	return names
}

// Missing returns the extensions of the map that a host does not have, in the map's order.
func (in Installed) Missing(m *shards.Map) []shards.Extension {
	return slices.DeleteFunc(slices.Clone(m.Extensions()), func(e shards.Extension) bool {
		_, ok := in[e.Name]
		return ok
	})
}
