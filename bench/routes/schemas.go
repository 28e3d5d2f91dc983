package routes

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// texts is the number of distinct statements in the part schemas.
const texts = 10

// schemas runs distinct statements, spread uniformly over many shards of one host. pgxpools over all schemas take part with
// the first number of shards only.
func schemas(ctx context.Context, s *stage) error {
	for i, count := range s.cfg.Shards {
		if err := schemasOf(ctx, s, count, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// schemaSide is a side of the part schemas.
type schemaSide struct {
	name        string // in the report
	application string // application_name of its sessions
	run         func(ctx context.Context, n shards.Number, text, id int) error
}

func schemasOf(ctx context.Context, s *stage, count int, allSchemas bool) error {
	defer s.close()
	m, err := s.cluster(ctx, count, 1)
	if err != nil {
		return err
	}
	sides, err := s.schemaSides(ctx, m, allSchemas)
	if err != nil {
		return err
	}
	c := comparison{metrics: []string{mean, perSecond}}
	for i, side := range sides {
		s.progress("%d shards, every statement once: %d of %d", count, i+1, len(sides))
		if err := side.once(ctx, m); err != nil {
			return err
		}
		c.sides = append(c.sides, func(ctx context.Context, _, _ int) (bool, error) {
			return false, side.run(ctx, shards.Number(rand.IntN(count)), rand.IntN(texts), rand.IntN(photosPerShard)+1)
		})
		if i > 0 {
			c.rows = append(c.rows, row{fmt.Sprintf("%d shards beside %s", count, side.name), 0, i})
		}
	}
	for _, goroutines := range []int{1, 16, 64} {
		s.progress("%d shards, goroutines: %d", count, goroutines)
		c.goroutines = goroutines
		if err := s.compare(ctx, c); err != nil {
			return err
		}
	}
	return s.addMemory(ctx, m.Hosts()[0], sides, c.rows)
}

// schemaSides returns a router and a pgxpool on one schema. With allSchemas it adds two over all schemas: a pgxpool
// with its usual cache, and pgxpools of one connection, each for some of the schemas and with all their statements
// prepared. These show what affinity costs by itself: no path is set.
func (s *stage) schemaSides(ctx context.Context, m *shards.Map, allSchemas bool) ([]schemaSide, error) {
	r, err := s.router(ctx, m)
	if err != nil {
		return nil, err
	}
	host, count := m.Hosts()[0], m.Len()
	one := schemaSide{name: "one schema", application: plainName + ", one schema"}
	pool, err := s.pool(ctx, host, one.application, connsPerHost)
	if err != nil {
		return nil, err
	}
	one.run = runPlain(m, 1, pool)
	sides := []schemaSide{{application: oursName, run: runRouted(r)}, one}
	if !allSchemas {
		return sides, nil
	}
	all := schemaSide{name: fmt.Sprintf("%d schemas", count), application: plainName + ", all schemas"}
	if pool, err = s.pool(ctx, host, all.application, connsPerHost); err != nil {
		return nil, err
	}
	all.run = runPlain(m, count, pool)
	dealt := schemaSide{name: fmt.Sprintf("%d schemas dealt to %d connections", count, connsPerHost), application: plainName + ", by hand"}
	pools := make([]*pgxpool.Pool, connsPerHost)
	for i := range pools {
		if pools[i], err = s.pool(ctx, host, dealt.application, 1, "statement_cache_capacity", "1024"); err != nil {
			return nil, err
		}
	}
	dealt.run = runPlain(m, count, pools...)
	return append(sides, all, dealt), nil
}

// once runs every text in every shard, to fill the statement caches.
func (side schemaSide) once(ctx context.Context, m *shards.Map) error {
	return harness.Together(connsPerHost, func(worker int) error {
		for n := worker; n < m.Len(); n += connsPerHost {
			for text := range texts {
				if err := side.run(ctx, shards.Number(n), text, 1); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func runRouted(r *router.Router) func(context.Context, shards.Number, int, int) error {
	queries := textsWith("")
	return func(ctx context.Context, n shards.Number, text, id int) error {
		shard, err := forKey(ctx, r, int64(n))
		if err != nil {
			return err
		}
		return scanText(shard.QueryRow(ctx, queries[text], id), n, text)
	}
}

// runPlain queries the first schemas of the map, each through one of the pools.
func runPlain(m *shards.Map, schemas int, pools ...*pgxpool.Pool) func(context.Context, shards.Number, int, int) error {
	queries := make([][]string, schemas)
	for n := range queries {
		queries[n] = textsWith(m.Schema(shards.Number(n)) + ".")
	}
	return func(ctx context.Context, n shards.Number, text, id int) error {
		n %= shards.Number(schemas)
		return scanText(pools[int(n)%len(pools)].QueryRow(ctx, queries[n][text], id), n, text)
	}
}

func textsWith(prefix string) []string {
	queries := make([]string, texts)
	for text := range queries {
		queries[text] = fmt.Sprintf("select owner, %d from %sphotos where id = $1", text, prefix)
	}
	return queries
}

// scanText checks that a row is the result of a text in a shard.
func scanText(row pgx.Row, n shards.Number, text int) error {
	var owner, number int
	if err := row.Scan(&owner, &number); err != nil {
		return err
	}
	if owner != int(n) || number != text {
		return fmt.Errorf("%w: statement %d of shard %d got the result of statement %d of shard %d", errWrongShard, text, n, number, owner)
	}
	return nil
}

// addMemory adds the mean memory of the sides' sessions, if it can be read.
func (s *stage) addMemory(ctx context.Context, host shards.Host, sides []schemaSide, rows []row) error {
	conn, err := server.Connect(ctx, host)
	if err != nil {
		return err
	}
	defer server.Close(conn)
	megabytes := make([]float64, len(sides))
	for i, side := range sides {
		sizes := server.SessionMemory(ctx, conn, side.application)
		if len(sizes) == 0 {
			return nil
		}
		for _, size := range sizes {
			megabytes[i] += float64(size) / 1e6 / float64(len(sizes))
		}
	}
	for _, r := range rows {
		s.add(r.what, 0, "MB per session", megabytes[r.ours], megabytes[r.plain])
	}
	return nil
}
