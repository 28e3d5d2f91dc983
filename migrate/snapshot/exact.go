package snapshot

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
)

// Exact reads the structure of one shard by a session of [drift.Connect], and returns it with the statements that make the
// same shard on another host: without rows, owners and grants, and without the objects that [provision] makes in every
// shard. Run them with a search_path of pg_catalog only, and with check_function_bodies off. It takes no lock, so the caller
// must lock out migrations. The error is an [UnknownError] for an object that no statement makes.
func Exact(ctx context.Context, conn *pgx.Conn, m *shards.Map, n shards.Number) (drift.Structure, string, error) {
	found, err := drift.Read(ctx, conn, m, n)
	if err != nil {
		return nil, "", err
	}
	structure := found[n]
	if err := unknown(structure, m, n); err != nil {
		return nil, "", err
	}
	if structure, err = inOrder(ctx, conn, structure); err != nil {
		return nil, "", err
	}
	s := &Snapshot{m: m, structure: structure}
	return structure, drift.Render(s.Text(), m.Schema(n), n), nil
}
