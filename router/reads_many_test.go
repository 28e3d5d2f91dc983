package router_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// whereRead is a shard's owner, and whether it was read on a replica.
type whereRead struct {
	Owner      int64
	Recovering bool
}

// TestManyShardsAreReadOnReplicas reads all shards by each of the ways to do it.
func TestManyShardsAreReadOnReplicas(t *testing.T) {
	t.Parallel()
	b, ctx := withReplicas(t, options{})
	b.awaitAll(ctx, t)
	q := many.Query[whereRead]{
		SQL:   `select owner, pg_is_in_recovery() as recovering from photos where id = 1`,
		Scan:  pgx.RowToStructByName[whereRead],
		Reads: &router.Reads{MaxLag: time.Minute, ReplicaOnly: true, Wait: time.Minute},
	}
	collect := func() ([]whereRead, error) { return many.Collect(ctx, b.Router, b.All(), q) }
	merge := func() (all []whereRead, err error) {
		less := func(a, b whereRead) bool { return a.Owner < b.Owner }
		for row, failure := range many.Merge(ctx, b.Router, b.All(), q, 0, less) {
			if failure != nil {
				return nil, failure
			}
			all = append(all, row)
		}
		return all, nil
	}
	stream := func() (all []whereRead, err error) {
		for row, failure := range many.Stream(ctx, b.Router, b.All(), q) {
			if failure != nil {
				return nil, failure
			}
			all = append(all, row)
		}
		slices.SortFunc(all, func(a, b whereRead) int { return cmp.Compare(a.Owner, b.Owner) })
		return all, nil
	}
	getMany := func() ([]whereRead, error) {
		var ids []shards.ID
		for n := range shards.Number(readShards) {
			id, err := b.Map().Layout().Compose(shards.Parts{Milliseconds: 1, Shard: n})
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		byID := q
		byID.SQL = `select id, shard, pg_is_in_recovery() from unnest($1::bigint[]) as id, kiloshard.id_shard(id) as shard`
		byID.Scan = func(row pgx.CollectableRow) (where whereRead, err error) {
			var id int64
			return where, row.Scan(&id, &where.Owner, &where.Recovering)
		}
		return many.GetMany(ctx, b.Router, ids, byID)
	}
	for name, read := range map[string]func() ([]whereRead, error){
		"Collect": collect, "Merge": merge, "Stream": stream, "GetMany": getMany,
	} {
		for range 5 { // statements are sent together once they are known
			all, err := read()
			if err != nil || len(all) != readShards {
				t.Fatalf("%s: got %d rows, error %v", name, len(all), err)
			}
			for n, row := range all {
				if row.Owner != int64(n) || !row.Recovering {
					t.Errorf("%s: got %+v of shard %d", name, row, n)
				}
			}
		}
	}
}
