package snapshot

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
)

// Statements make a shard. It takes rows faster before it has its keys. Run them with a search_path of pg_catalog only, and with
// check_function_bodies off.
type Statements struct {
	Tables string // and all else, also keys that something else needs, such as a foreign key
	Keys   string // and indexes, and comments on these
}

// Exact reads the structure of one shard by a session of [drift.Connect], and returns the statements that make the same shard
// on another host: without rows, owners and grants, and without the objects that [provision] makes in every shard. It takes no
// lock, so the caller must lock out migrations. The error is an [UnknownError] for an object that no statement makes.
func Exact(ctx context.Context, conn *pgx.Conn, m *shards.Map, n shards.Number) (Statements, error) {
	found, err := drift.Read(ctx, conn, m, n)
	if err != nil {
		return Statements{}, err
	}
	if err := unknown(found[n], m, n); err != nil {
		return Statements{}, err
	}
	structure, needed, err := inOrder(ctx, conn, found[n])
	if err != nil {
		return Statements{}, err
	}
	tables, keys := apart(structure, needed)
	return Statements{drift.Render(text(tables), m.Schema(n), n), drift.Render(text(keys), m.Schema(n), n)}, nil
}

// apart returns the lines of keys and indexes that no others need, and those others. needed are the indexes of what each line needs,
// all of which come before it.
func apart(structure drift.Structure, needed [][]int) (others, keys drift.Structure) {
	first := make([]bool, len(structure))
	for i, l := range slices.Backward(structure) {
		first[i] = first[i] || !l.OfKeys()
		if first[i] {
			for _, n := range needed[i] {
				first[n] = true
			}
		}
	}
	for i, l := range structure {
		if first[i] {
			others = append(others, l)
		} else {
			keys = append(keys, l)
		}
	}
	return others, keys
}
