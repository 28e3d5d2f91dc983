package stores

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

// measureObjects measures operations on objects of shard 0.
func measureObjects(ctx context.Context, b *bench) error {
	pins, err := objects.Open(b.router, "pin", objects.Options[pin]{})
	if err != nil {
		return err
	}
	shard, err := b.router.ForShard(0)
	if err != nil {
		return err
	}
	const rows = 1000
	text := pin{"New Star Wars character", "http://webpage.com/asdf", 0}
	ids := make([]shards.ID, rows)
	if err := all(b.cfg.Callers, rows, func(i int) error {
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
	if err := b.compare(ctx, comparison{what: "object, get", calls: b.cfg.Calls, callers: b.cfg.Callers}, func(ctx context.Context, i int) error {
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
	if err := b.compare(ctx, comparison{what: "object, create", calls: b.cfg.Calls, callers: b.cfg.Callers}, func(ctx context.Context, _ int) error {
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
	return b.compare(ctx, comparison{what: "object, update", calls: b.cfg.Calls / 4, callers: b.cfg.Callers}, func(ctx context.Context, i int) error {
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
