package migrate

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/migrate/versions"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// versionTable is tern's version table in the schema of each shard.
const versionTable = "schema_version"

// shardVersion is the version of a shard, or why it has none.
type shardVersion struct {
	version int32
	table   bool  // it has a version table; without one it is at version 0
	err     error // [ErrNotCreated], or that its version table is broken
}

// shardVersions reads the versions of shards on the session's host.
func (s *session) shardVersions(ctx context.Context, m *shards.Map, numbers []shards.Number) (map[shards.Number]shardVersion, error) {
	schemas := m.Schemas(numbers)
	answer, err := s.value(ctx, versions.Query(schemas))
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", connect.NameHolders(ctx, s.conn, err))
	}
	return parseVersions(answer, schemas, numbers)
}

// parseVersions reads the answer to [versions.Query].
func parseVersions(answer string, schemas []string, numbers []shards.Number) (map[shards.Number]shardVersion, error) {
	all, err := versions.Parse(answer, schemas)
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", err)
	}
	found := make(map[shards.Number]shardVersion, len(numbers))
	for i, v := range all {
		at := shardVersion{version: v.Number, table: v.Table, err: v.Err}
		if !v.Schema {
			at.err = ErrNotCreated
		}
		found[numbers[i]] = at
	}
	return found, nil
}
