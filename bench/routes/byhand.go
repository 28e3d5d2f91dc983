package routes

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// byHand are single connections, each of which serves some of the schemas.
type byHand []*pgxpool.Pool

func openByHand(ctx context.Context, host shards.Host) (byHand, error) {
	var pools byHand
	for range connsPerHost {
		pool, err := openPlain(ctx, host, byHandName, "pool_max_conns", "1", "statement_cache_capacity", "1024")
		if err != nil {
			pools.close()
			return nil, err
		}
		pools = append(pools, pool)
	}
	return pools, nil
}

func (p byHand) close() {
	for _, pool := range p {
		pool.Close()
	}
}

// askByHand runs a statement on a shard's connection, with qualified table names.
func askByHand(pools byHand, m *shards.Map) ask {
	queries := make([][]string, m.Len())
	for n := range queries {
		queries[n] = textsWith(m.Schema(shards.Number(n)) + ".")
	}
	return func(ctx context.Context, n shards.Number, text, id int) error {
		return askOne(pools[int(n)%len(pools)].QueryRow(ctx, queries[n][text], id), n, text)
	}
}
