package migrate

import (
	"context"
	"log/slog"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// BareName is a function that names what is in its shard, or of an extension, without its schema, and that is called for each row
// that is written. A move and a restore of the shard write rows with an empty search_path, so they fail unless the function
// has a search_path of its own: SET search_path FROM CURRENT.
type BareName struct {
	Caller   string `json:"caller"`   // such as "constraint c on table shard_00001.photos"
	Function string `json:"function"` // such as "shard_00001.f(bigint)"
	Name     string `json:"name"`     // the first one
}

// findBareNames looks for them in one shard. An error is logged, since the run has done what it was to do.
func (r *run) findBareNames(ctx context.Context, n shards.Number) []BareName {
	s, err := r.sessions.Take(ctx, r.cfg.Map.Host(n))
	if err != nil {
		r.cfg.Logger.Info("functions are not checked for names without a schema", slog.Any("because", err))
		return nil
	}
	defer r.sessions.Give(s)
	result := s.Conn.ExecParams(ctx, sql.BareNamesQuery, [][]byte{[]byte(r.cfg.Map.Schema(n))}, nil, nil, nil).Read()
	if result.Err != nil {
		r.cfg.Logger.Info("functions are not checked for names without a schema", slog.Any("because", result.Err))
	}
	var found []BareName
	for _, row := range result.Rows {
		found = append(found, BareName{Caller: string(row[0]), Function: string(row[1]), Name: string(row[2])})
	}
	return found
}
