package rows

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/mirror"
)

// makeHidden makes the hidden tables of a shard that has views, in place of what an earlier try has made.
func (j *job) makeHidden(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
	hidden, views, schema := mirror.Hidden(n), mirror.Views(n), j.cfg.Map.Schema(n)
	err := j.inTx(ctx, conn, func(tx pgx.Tx) error {
		statements := []string{
			fmt.Sprintf("drop schema if exists %s cascade", hidden), fmt.Sprintf("create schema %s", hidden), fmt.Sprintf("grant usage on schema %s to kiloshard_adopt", hidden),
			fmt.Sprintf("create schema if not exists %s", views),
		}
		for _, t := range j.set.Tables {
			statements = append(statements, fmt.Sprintf("grant usage, create on schema %s to %s", hidden, quote(t.Owner)))
			defaults, err := viewDefaults(ctx, tx, schema, t.Name.Table)
			if err != nil {
				return err
			}
			make, err := t.Make(hidden, defaults)
			if err != nil {
				return err
			}
			statements = append(statements, make...)
		}
		return run(ctx, tx, statements...)
	})
	if err != nil {
		return fmt.Errorf("making the tables of shard %d: %w", n, err)
	}
	j.report(Event{Kind: Made, Shards: shards.SetOf(n)})
	return nil
}

// viewDefaults returns the defaults of the columns of a view.
func viewDefaults(ctx context.Context, tx pgx.Tx, schema, view string) (map[string]string, error) {
	const query = `select a.attname::text, pg_get_expr(d.adbin, d.adrelid) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		join pg_attribute a on a.attrelid = c.oid join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
		where n.nspname = $1 and c.relname = $2 and c.relkind = 'v'`
	rows, err := tx.Query(ctx, query, schema, view)
	if err != nil {
		return nil, err
	}
	defaults := map[string]string{}
	var name, expression string
	_, err = pgx.ForEachRow(rows, []any{&name, &expression}, func() error {
		defaults[name] = expression
		return nil
	})
	return defaults, err
}

// startCopying sets the stage of shards whose hidden tables are there, and waits until every writer mirrors its rows.
func (j *job) startCopying(ctx context.Context, group []shards.Number) error {
	err := j.inTx(ctx, j.conn, func(tx pgx.Tx) error {
		for _, n := range group {
			if err := ledger.SetStage(ctx, tx, n, ledger.StageViews, ledger.StageCopying); err != nil {
				return err
			}
			for _, t := range j.set.Tables {
				if _, err := tx.Exec(ctx, `insert into kiloshard_adopt.copies (shard, relation) values ($1, $2) on conflict (shard, relation) do update set last = null, done = false`, int32(n), t.Name.String()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		j.report(Event{Kind: Copying, Shards: shards.SetOf(group...)})
	}
	return err
}
