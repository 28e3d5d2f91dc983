package stores

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

// objects measures points on shard 0.
func (b *bench) objects(ctx context.Context) error {
	pins, err := objects.Open(b.r, "pin", objects.Options[pin]{})
	if err != nil {
		return err
	}
	shard, err := b.r.ForShard(0)
	if err != nil {
		return err
	}
	const rows = 1000
	text := pin{"New Star Wars character", "http://webpage.com/asdf", 0}
	ids := make([]shards.ID, rows)
	if err := b.all(rows, func(i int) error {
		o, err := pins.CreateIn(ctx, shard, text)
		ids[i] = o.ID
		return err
	}); err != nil {
		return err
	}
	local := func(i int) int64 { return objects.Layout.Parts(ids[i*7919%rows]).Sequence }
	pool, table := b.pools[0], shard.Schema()+".pins"
	get := `select data::text, ts from ` + table + ` where local_id = $1 and data->'active' is distinct from 'false'`
	insert := `insert into ` + table + ` (data) values ($1) returning local_id, ts`
	lock, update := get+` for update`, `update `+table+` set data = data || $2, ts = now() where local_id = $1 returning ts`
	if err := b.compare(ctx, "object, get", b.cfg.Calls, func(ctx context.Context, i int) error {
		_, err := pins.Get(ctx, ids[i*7919%rows])
		return err
	}, func(ctx context.Context, i int) error {
		var data []byte
		var at time.Time
		if err := pool.QueryRow(ctx, get, local(i)).Scan(&data, &at); err != nil {
			return err
		}
		return json.Unmarshal(data, &pin{})
	}); err != nil {
		return err
	}
	if err := b.compare(ctx, "object, create", b.cfg.Calls, func(ctx context.Context, _ int) error {
		_, err := pins.CreateIn(ctx, shard, text)
		return err
	}, func(ctx context.Context, _ int) error {
		data, err := json.Marshal(text)
		if err != nil {
			return err
		}
		var id int64
		var at time.Time
		return pool.QueryRow(ctx, insert, string(data)).Scan(&id, &at)
	}); err != nil {
		return err
	}
	return b.compare(ctx, "object, update", b.cfg.Calls/4, func(ctx context.Context, i int) error {
		_, err := pins.Update(ctx, ids[i*7919%rows], func(p *pin) error { p.Likes++; return nil })
		return err
	}, func(ctx context.Context, i int) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			var data []byte
			var at time.Time
			var p pin
			if err := tx.QueryRow(ctx, lock, local(i)).Scan(&data, &at); err != nil {
				return err
			}
			if err := json.Unmarshal(data, &p); err != nil {
				return err
			}
			p.Likes++
			data, err := json.Marshal(p)
			if err != nil {
				return err
			}
			return tx.QueryRow(ctx, update, local(i), string(data)).Scan(&at)
		})
	})
}

// uuid returns the ID of the i-th entity of a kind.
func uuid(kind byte, i int) (id entities.ID) {
	id[0] = kind
	binary.BigEndian.PutUint64(id[8:], uint64(i)*0x9e3779b97f4a7c15)
	return id
}

func link(i int) string {
	return fmt.Sprintf(`{"title": "entity %d", "link": "http://example.org/%[1]d"}`, i)
}

// entities measures points on shard 0. With an index both write its row, in another transaction, since it is in another shard
// as a rule. By hand there are two ways: one forgets the row if the writer dies between the two; the other has an outbox, as
// ours does: what is to be done is written with the entity, and removed when it is done, unless the entity has changed.
func (b *bench) entities(ctx context.Context) error {
	shard, err := b.r.ForShard(0)
	if err != nil {
		return err
	}
	pool, schema := b.pools[0], shard.Schema()
	get := `select body::text, added_id, updated from ` + schema + `.entities where id = $1`
	put := `insert into ` + schema + `.entities (id, body) values ($1, $2) on conflict (id) do update set body = excluded.body, updated = clock_timestamp()`
	index := `insert into ` + schema + `.index_link (link, entity_id) values ($1, $2) on conflict do nothing`
	begin := `with old as (select body from ` + schema + `.entities where id = $1 for update), put as (` + put + ` returning xmin::text as version)
		insert into ` + schema + `.entity_work (entity_id, before, after, due) select $1, (select body from old), $2, now() + interval '6 s' from put
		returning work_id, (select version from put)`
	end := `delete from ` + schema + `.entity_work where work_id = $1 and exists (select from ` + schema + `.entities where id = $2 and xmin::text = $3)`
	plain, err := entities.Open(b.r, entities.Definition{Shards: 1})
	if err != nil {
		return err
	}
	indexed, err := entities.Open(b.r, entities.Definition{Shards: 1, Indexes: definition.Indexes})
	if err != nil {
		return err
	}
	if err := b.compare(ctx, "entity, put", b.cfg.Calls, func(ctx context.Context, i int) error {
		return plain.Put(ctx, uuid(1, i), []byte(link(i)))
	}, func(ctx context.Context, i int) error {
		_, err := pool.Exec(ctx, put, uuid(2, i), link(i))
		return err
	}); err != nil {
		return err
	}
	if err := b.compare(ctx, "entity, get", b.cfg.Calls, func(ctx context.Context, i int) error {
		_, err := plain.Get(ctx, uuid(1, i))
		return err
	}, func(ctx context.Context, i int) error {
		var body []byte
		var added int64
		var at time.Time
		return pool.QueryRow(ctx, get, uuid(2, i)).Scan(&body, &added, &at)
	}); err != nil {
		return err
	}
	calls := b.cfg.Calls / 2
	if err := b.compare(ctx, "entity, put with an index row", calls, func(ctx context.Context, i int) error {
		return indexed.Put(ctx, uuid(3, i), []byte(link(i)))
	}, func(ctx context.Context, i int) error {
		var work int64
		var version string
		if err := pool.QueryRow(ctx, begin, uuid(4, i), link(i)).Scan(&work, &version); err != nil {
			return err
		}
		if _, err := pool.Exec(ctx, index, fmt.Sprintf("http://example.org/%d", i), uuid(4, i)); err != nil {
			return err
		}
		_, err := pool.Exec(ctx, end, work, uuid(4, i), version)
		return err
	}); err != nil {
		return err
	}
	return b.compare(ctx, "the same, by hand without an outbox", calls, func(ctx context.Context, i int) error {
		return indexed.Put(ctx, uuid(5, i), []byte(link(i)))
	}, func(ctx context.Context, i int) error {
		if _, err := pool.Exec(ctx, put, uuid(6, i), link(i)); err != nil {
			return err
		}
		_, err := pool.Exec(ctx, index, fmt.Sprintf("http://example.org/%d", i), uuid(6, i))
		return err
	})
}

// many measures GetMany over all shards, beside one batch a host by hand, also where the way to the hosts is long.
func (b *bench) many(ctx context.Context) error {
	pins, err := objects.Open(b.r, "pin", objects.Options[pin]{})
	if err != nil {
		return err
	}
	ids := make([]shards.ID, b.cfg.IDs)
	if err := b.all(len(ids), func(i int) error {
		shard, err := b.r.ForShard(shards.Number(i % b.cfg.Shards))
		if err != nil {
			return err
		}
		o, err := pins.CreateIn(ctx, shard, pin{Details: fmt.Sprint(i)})
		ids[i] = o.ID
		return err
	}); err != nil {
		return err
	}
	callers := b.cfg.Callers
	b.cfg.Callers = 1
	defer func() { b.cfg.Callers = callers }()
	ours := func(ctx context.Context, _ int) error {
		all, err := pins.GetMany(ctx, ids)
		if err == nil && len(all) != len(ids) {
			err = fmt.Errorf("%d objects, expected %d", len(all), len(ids))
		}
		return err
	}
	byHand := func(ctx context.Context, _ int) error {
		all, err := b.manyByHand(ctx, ids)
		if err == nil && len(all) != len(ids) {
			err = fmt.Errorf("%d objects by hand, expected %d", len(all), len(ids))
		}
		return err
	}
	const calls = 20
	if err := b.compare(ctx, fmt.Sprintf("GetMany of %d objects on %d shards", b.cfg.IDs, min(b.cfg.IDs, b.cfg.Shards)), calls, ours, byHand); err != nil {
		return err
	}
	for i := range b.wires {
		b.wires[i].delay.Store(int64(roundTrip))
		defer b.wires[i].delay.Store(0)
	}
	far, err := b.openRouter(ctx) // one that has never known the hosts nearer
	if err != nil {
		return err
	}
	defer far.Close()
	if pins, err = objects.Open(far, "pin", objects.Options[pin]{}); err != nil {
		return err
	}
	return b.compare(ctx, fmt.Sprintf("the same, %v a round trip", roundTrip), calls, ours, byHand)
}

// roundTrip is long enough for a call's time to say how many it waits for.
const roundTrip = 10 * time.Millisecond

// manyByHand reads pins in the order of their IDs, those of a host in one batch.
func (b *bench) manyByHand(ctx context.Context, ids []shards.ID) ([]pin, error) {
	m := b.r.Map()
	of := map[shards.Number][]int64{}
	for _, id := range ids {
		p := objects.Layout.Parts(id)
		of[p.Shard] = append(of[p.Shard], p.Sequence)
	}
	batches := make([]pgx.Batch, len(b.pools))
	found := make([]map[shards.ID]pin, len(b.pools))
	for n, locals := range of {
		host := m.HostIndex(n)
		if found[host] == nil {
			found[host] = map[shards.ID]pin{}
		}
		read := func(rows pgx.Rows) error {
			var local int64
			var data []byte
			var at time.Time
			_, err := pgx.ForEachRow(rows, []any{&local, &data, &at}, func() error {
				id, err := objects.Layout.Compose(shards.Parts{Shard: n, Type: 1, Sequence: local})
				if err != nil {
					return err
				}
				var p pin
				err = json.Unmarshal(data, &p)
				found[host][id] = p
				return err
			})
			return err
		}
		batches[host].Queue(`select local_id, data::text, ts from `+m.Schema(n)+`.pins where local_id = any($1) and data->'active' is distinct from 'false'`, locals).Query(read)
	}
	failed := make(chan error, len(batches))
	for host := range batches {
		go func() { failed <- b.pools[host].SendBatch(ctx, &batches[host]).Close() }()
	}
	var first error
	for range batches {
		if err := <-failed; first == nil {
			first = err
		}
	}
	var all []pin
	for _, id := range ids {
		if p, ok := found[m.HostIndex(objects.Layout.Parts(id).Shard)][id]; ok {
			all = append(all, p)
		}
	}
	return all, first
}

// fill measures the cleaner with a new index, over a few shards.
func (b *bench) fill(ctx context.Context) error {
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
	if err := many.Each(ctx, b.r, first, many.Options{PerHost: 1}, func(ctx context.Context, s router.Shard) error {
		if _, err := s.Exec(ctx, `truncate entities, index_link`); err != nil {
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
	counts, err := many.Collect(ctx, b.r, first, many.Query[int]{SQL: `select count(*) from entities`, Scan: pgx.RowTo[int]})
	if err != nil {
		return err
	}
	for _, n := range counts {
		b.report.Filled += n
	}
	store, err := entities.Open(b.r, entities.Definition{Shards: over, Indexes: definition.Indexes})
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
