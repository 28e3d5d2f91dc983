package stores

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// measureFill measures how fast the cleaner fills a new index, over a few shards.
func measureFill(ctx context.Context, b *bench) error {
	over := 1
	for over < 16 && over*2 <= b.cfg.Shards {
		over *= 2
	}
	b.cfg.Progress("filling an index")
	// The last digit of the digest of an ID says the shard, of as many shards as a power of 2.
	const query = `with made as materialized (select gen_random_uuid() as id, n from generate_series(1, $1) n)
		insert into entities (id, body) select id, jsonb_build_object('title', 'entity ' || n, 'link', 'http://example.org/' || n || '/' || $2::int)
		from made where ('x' || right(md5(uuid_send(id)), 1))::bit(4)::int % $3::int = $2::int`
	first := shards.SetOfRanges(shards.Range{First: 0, Last: shards.Number(over - 1)})
	if err := many.Each(ctx, b.router, first, many.Options{PerHost: 1}, func(ctx context.Context, s router.Shard) error {
		if _, err := s.Exec(ctx, `truncate entities, entity_work, index_link; update entity_indexes set definition = '' where name = 'entities'`); err != nil {
			return err
		}
		if _, err := s.Exec(ctx, query, b.cfg.Entities, int(s.Number()), over); err != nil {
			return err
		}
		_, err := s.Exec(ctx, `analyze entities`)
		return err
	}); err != nil {
		return err
	}
	counts, err := many.Collect(ctx, b.router, first, many.Query[int]{SQL: `select count(*) from entities`, Scan: pgx.RowTo[int]})
	if err != nil {
		return err
	}
	for _, n := range counts {
		b.report.Filled += n
	}
	store, err := entities.Open(ctx, b.router, entities.Definition{Shards: over, Indexes: definition.Indexes})
	if err != nil {
		return err
	}
	began, ended := time.Now(), make(chan error, 1)
	go func() { ended <- store.Fill(ctx, "index_link", entities.CleanOptions{Workers: 1}) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			took := time.Since(began).Seconds()
			b.report.WithCheck = float64(b.report.Filled) / took
			if b.report.Rate == 0 {
				b.report.Rate = b.report.WithCheck
			}
			if s := store.Stats(); err == nil && (int(s.Added) != b.report.Filled || s.Removed > 0) {
				err = fmt.Errorf("%d entities, and %+v", b.report.Filled, s)
			}
			return err
		case <-tick.C:
			if b.report.Rate == 0 && int(store.Stats().Filled) >= b.report.Filled {
				b.report.Rate = float64(b.report.Filled) / time.Since(began).Seconds()
			}
		}
	}
}
