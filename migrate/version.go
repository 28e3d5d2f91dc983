package migrate

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/migrate/versions"
	"github.com/kiloshard/kiloshard/shards"
)

// versionTable is tern's, in the schema of each shard.
const versionTable = "schema_version"

// standing is where a shard stands: at a version, or why it stands at none.
type standing struct {
	version int32
	table   bool  // it has a version table; without one it stands at version 0
	err     error // [ErrNotCreated], or that its version table is broken
}

// standings returns where shards of the session's host stand.
func (s *session) standings(ctx context.Context, m *shards.Map, numbers []shards.Number) (map[shards.Number]standing, error) {
	schemas := schemasOf(m, numbers)
	answer, err := s.value(ctx, versions.Query(schemas))
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", err)
	}
	return parseStandings(answer, schemas, numbers)
}

func schemasOf(m *shards.Map, numbers []shards.Number) []string {
	schemas := make([]string, len(numbers))
	for i, n := range numbers {
		schemas[i] = m.Schema(n)
	}
	return schemas
}

// parseStandings reads the answer to [versions.Query].
func parseStandings(answer string, schemas []string, numbers []shards.Number) (map[shards.Number]standing, error) {
	all, err := versions.Parse(answer, schemas)
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", err)
	}
	found := make(map[shards.Number]standing, len(numbers))
	for i, v := range all {
		at := standing{version: v.Number, table: v.Table, err: v.Err}
		if !v.Schema {
			at.err = ErrNotCreated
		}
		found[numbers[i]] = at
	}
	return found, nil
}
