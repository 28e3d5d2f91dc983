package routes

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// texts is the number of distinct statements in the part schemas.
const texts = 10

// measureSchemas runs distinct statements, spread uniformly over many shards of one host.
func measureSchemas(ctx context.Context, b *bench) error {
	for i, count := range b.cfg.Shards {
		m, err := b.newCluster(ctx, count, 1)
		if err != nil {
			return err
		}
		if err := b.compareSchemas(ctx, m, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// The names of the sides' sessions in the part schemas.
const (
	oneSchemaName  = plainName + ", one schema"
	allSchemasName = plainName + ", all schemas"
	byHandName     = plainName + ", by hand"
)

// compareSchemas measures over the shards of a map. withPlain reports whether plain pools over all their schemas take
// part: one with its usual cache, and one with the schemas dealt out to its connections, so that each sees a few of them
// and has all their statements prepared. The latter shows what affinity costs by itself: no path is set.
func (b *bench) compareSchemas(ctx context.Context, m *shards.Map, withPlain bool) error {
	host := m.Hosts()[0]
	ours, err := openRouter(ctx, m)
	if err != nil {
		return err
	}
	defer ours.Close()
	oneSchema, err := openPlain(ctx, host, oneSchemaName)
	if err != nil {
		return err
	}
	defer oneSchema.Close()
	asks := []ask{askOurs(ours), askPlain(oneSchema, m, 1)}
	names := []string{"", "one schema"}
	sessions := []string{oursName, oneSchemaName}
	if withPlain {
		allSchemas, err := openPlain(ctx, host, allSchemasName)
		if err != nil {
			return err
		}
		defer allSchemas.Close()
		byHand, err := openByHand(ctx, host)
		if err != nil {
			return err
		}
		defer byHand.close()
		asks = append(asks, askPlain(allSchemas, m, m.Len()), askByHand(byHand, m))
		names = append(names, fmt.Sprintf("%d schemas", m.Len()), fmt.Sprintf("%d schemas dealt to %d connections", m.Len(), connsPerHost))
		sessions = append(sessions, allSchemasName, byHandName)
	}

	calls := make([]call, len(asks))
	for i, ask := range asks {
		b.progress("%d shards, every statement once: %d of %d", m.Len(), i+1, len(asks))
		if err := once(ctx, m, ask); err != nil {
			return err
		}
		calls[i] = func(ctx context.Context, _, _ int) (bool, error) {
			return false, ask(ctx, shards.Number(rand.IntN(m.Len())), rand.IntN(texts), rand.IntN(photosPerShard)+1)
		}
	}
	for _, goroutines := range []int{1, 16, 64} {
		b.progress("%d shards, goroutines: %d", m.Len(), goroutines)
		laps, err := b.compare(ctx, goroutines, calls...)
		if err != nil {
			return err
		}
		for i := 1; i < len(calls); i++ {
			b.addLaps(beside(m, names[i]), goroutines, laps[0], laps[i], mean, perSecond)
		}
	}
	return b.addMemory(ctx, m, names, sessions)
}

func beside(m *shards.Map, plain string) string {
	return fmt.Sprintf("%d shards beside %s", m.Len(), plain)
}

// ask runs one of the texts in a shard, and checks the result.
type ask func(ctx context.Context, n shards.Number, text, id int) error

// once runs every text in every shard, to fill the statement caches.
func once(ctx context.Context, m *shards.Map, a ask) error {
	return stats.Together(connsPerHost, func(worker int) error {
		for n := worker; n < m.Len(); n += connsPerHost {
			for text := range texts {
				if err := a(ctx, shards.Number(n), text, 1); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func askOurs(r *router.Router) ask {
	queries := textsWith("")
	return func(ctx context.Context, n shards.Number, text, id int) error {
		shard, err := forKey(ctx, r, int64(n))
		if err != nil {
			return err
		}
		return askOne(shard.QueryRow(ctx, queries[text], id), n, text)
	}
}

// askPlain queries only the first schemas of the map.
func askPlain(pool *pgxpool.Pool, m *shards.Map, schemas int) ask {
	queries := make([][]string, schemas)
	for n := range queries {
		queries[n] = textsWith(m.Schema(shards.Number(n)) + ".")
	}
	return func(ctx context.Context, n shards.Number, text, id int) error {
		n %= shards.Number(schemas)
		return askOne(pool.QueryRow(ctx, queries[n][text], id), n, text)
	}
}

func textsWith(prefix string) []string {
	var queries []string
	for text := range texts {
		queries = append(queries, fmt.Sprintf("select owner, %d from %sphotos where id = $1", text, prefix))
	}
	return queries
}

func askOne(row pgx.Row, n shards.Number, text int) error {
	var owner, number int
	if err := row.Scan(&owner, &number); err != nil {
		return err
	}
	if owner != int(n) || number != text {
		return fmt.Errorf("%w: statement %d of shard %d got the result of statement %d of shard %d", errWrongShard, text, n, number, owner)
	}
	return nil
}

// addMemory adds the memory of the sides' sessions, if it can be read.
func (b *bench) addMemory(ctx context.Context, m *shards.Map, names, sessions []string) error {
	conns, err := server.Open(ctx, m.Hosts()[0], 1)
	if err != nil {
		return err
	}
	defer server.Close(conns)
	megabytes := make([]float64, len(sessions))
	for i, name := range sessions {
		sizes := server.SessionMemory(ctx, conns[0], name)
		if len(sizes) == 0 {
			return nil
		}
		for _, size := range sizes {
			megabytes[i] += float64(size) / 1e6 / float64(len(sizes))
		}
	}
	for i := 1; i < len(names); i++ {
		b.add(beside(m, names[i]), 0, "MB per session", megabytes[:1], megabytes[i:i+1])
	}
	return nil
}
