package rows

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// was is what an old table had before it was closed.
type was struct {
	Triggers []structure.Object
	Links    []structure.Link
}

// ours are the tables that this package adds to the ledger, and what mirrors may do.
const ours = `
create table kiloshard_adopt.remembered (one boolean primary key default true check (one), tables jsonb not null);
create table kiloshard_adopt.copies (shard int, relation text, last text[], done boolean not null default false, primary key (shard, relation));
grant update (changed_at) on kiloshard_adopt.shards to kiloshard_adopt`

// recall returns what the old tables had, or nil if they are not closed and nothing of that has begun.
func (j *job) recall(ctx context.Context) (map[string]was, error) {
	there, err := j.remembers(ctx, j.conn)
	if err != nil || !there {
		return nil, err
	}
	var text []byte
	if err := j.conn.QueryRow(ctx, `select tables from kiloshard_adopt.remembered`).Scan(&text); err != nil {
		return nil, err
	}
	all := map[string]was{}
	return all, json.Unmarshal(text, &all)
}

func (j *job) remembers(ctx context.Context, q ledger.Querier) (there bool, err error) {
	err = q.QueryRow(ctx, `select to_regclass('kiloshard_adopt.remembered') is not null`).Scan(&there)
	return there, err
}

// remember keeps triggers and foreign keys as they are now, and makes the tables that this package adds to the ledger.
func (j *job) remember(ctx context.Context) error {
	all := map[string]was{}
	for _, t := range j.set.Tables {
		all[t.Name.String()] = was{t.Triggers, t.Links}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return j.inTx(ctx, j.conn, func(tx pgx.Tx) error {
		there, err := j.remembers(ctx, tx)
		if err != nil || there {
			return err
		}
		if err := run(ctx, tx, ours); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into kiloshard_adopt.remembered (tables) values ($1)`, string(text))
		return err
	})
}
