package drift

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/migrate/versions"
	"github.com/kiloshard/kiloshard/shards"
)

// unknown is the version of a shard whose schema_version is unreadable.
const unknown int32 = -1

// versions returns the versions of the shards.
func (s *session) versions(ctx context.Context) (map[shards.Number]int32, error) {
	results, err := s.conn.PgConn().Exec(ctx, versions.Query(s.schemas)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", err)
	}
	all, err := versions.Parse(string(results[len(results)-1].Rows[0][0]), s.schemas)
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", err)
	}
	found := map[shards.Number]int32{}
	for i, v := range all {
		found[s.byName[s.schemas[i]]] = v.Number
		if v.Err != nil {
			found[s.byName[s.schemas[i]]] = unknown
		}
	}
	return found, nil
}
