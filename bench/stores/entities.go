package stores

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/router/entities"
)

// measureEntities measures operations on entities of shard 0. With an index both sides write its row in another
// transaction, because it is usually in another shard. There are two ways by hand: one loses the row if the writer dies
// between the two transactions; the other has an outbox, as ours does: it writes the pending work with the entity, and
// removes it when it is done, unless the entity has changed.
func measureEntities(ctx context.Context, b *bench) error {
	shard, err := b.router.ForShard(0)
	if err != nil {
		return err
	}
	pool, schema := b.pools[0], shard.Schema()
	get := `select body::text, added_id, updated from ` + schema + `.entities where id = $1`
	put := `insert into ` + schema + `.entities (id, body) values ($1, $2) on conflict (id) do update set body = excluded.body, version = excluded.version, updated = clock_timestamp()`
	index := `insert into ` + schema + `.index_link (link, entity_id, entity_version) values ($1, $2, 1) on conflict do nothing`
	begin := `with old as (select body from ` + schema + `.entities where id = $1 for update), put as (` + put + ` returning version)
		insert into ` + schema + `.entity_work (version, entity_id, state, before, after) select version, $1, 'written', (select body from old), $2 from put
		returning version`
	end := `delete from ` + schema + `.entity_work where version = $1 and exists (select from ` + schema + `.entities where id = $2 and version = $1)`
	// A store without indexes may write in these shards, too.
	if _, err := shard.Exec(ctx, `update entity_indexes set required = false where name = 'index_link'`); err != nil {
		return err
	}
	plain, err := entities.Open(ctx, b.router, entities.Definition{Shards: 1})
	if err != nil {
		return err
	}
	indexed, err := entities.Open(ctx, b.router, entities.Definition{Shards: 1, Indexes: definition.Indexes})
	if err != nil {
		return err
	}
	if err := b.compare(ctx, comparison{what: "entity, put", calls: b.cfg.Calls, callers: b.cfg.Callers}, func(ctx context.Context, i int) error {
		return plain.Put(ctx, uuid(1, i), []byte(link(i)))
	}, func(ctx context.Context, i int) error {
		_, err := pool.Exec(ctx, put, uuid(2, i), link(i))
		return err
	}); err != nil {
		return err
	}
	if err := b.compare(ctx, comparison{what: "entity, get", calls: b.cfg.Calls, callers: b.cfg.Callers}, func(ctx context.Context, i int) error {
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
	if err := b.compare(ctx, comparison{what: "entity, put with an index row", calls: calls, callers: b.cfg.Callers}, func(ctx context.Context, i int) error {
		return indexed.Put(ctx, uuid(3, i), []byte(link(i)))
	}, func(ctx context.Context, i int) error {
		var version int64
		if err := pool.QueryRow(ctx, begin, uuid(4, i), link(i)).Scan(&version); err != nil {
			return err
		}
		if _, err := pool.Exec(ctx, index, fmt.Sprintf("http://example.org/%d", i), uuid(4, i)); err != nil {
			return err
		}
		_, err := pool.Exec(ctx, end, version, uuid(4, i))
		return err
	}); err != nil {
		return err
	}
	return b.compare(ctx, comparison{what: "the same, by hand without an outbox", calls: calls, callers: b.cfg.Callers}, func(ctx context.Context, i int) error {
		return indexed.Put(ctx, uuid(5, i), []byte(link(i)))
	}, func(ctx context.Context, i int) error {
		if _, err := pool.Exec(ctx, put, uuid(6, i), link(i)); err != nil {
			return err
		}
		_, err := pool.Exec(ctx, index, fmt.Sprintf("http://example.org/%d", i), uuid(6, i))
		return err
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
