package rows

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/mirror"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// cutOver puts the tables of a shard in the place of its views.
func (j *job) cutOver(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
	schema, hidden, views := j.cfg.Map.Schema(n), mirror.Hidden(n), mirror.Views(n)
	locks, err := ofViews(ctx, conn, schema, views)
	if err != nil {
		return err
	}
	rest := []string{fmt.Sprintf("grant usage on schema %s to kiloshard_adopt", schema)}
	for _, t := range j.set.Tables {
		locks = append(locks, fmt.Sprintf("alter table %s set schema %s", t.At(hidden).SQL(), schema))
	}
	for _, t := range j.set.Tables {
		links, err := t.MakeLinks(schema)
		if err != nil {
			return err
		}
		triggers, err := t.MakeTriggers(schema)
		if err != nil {
			return err
		}
		rest = append(append(append(rest, links...), triggers...), j.writer.OnNew(t, schema)...)
	}
	set := shards.SetOf(n)
	err = j.whileLocked(ctx, conn, set, fmt.Sprintf("cutover of shard %d", n), func(b budget) error {
		if err := excludeVacuum(ctx, b.tx, j.set.Tables, hidden); err != nil {
			return err
		}
		if err := b.restart().run(ctx, locks...); err != nil {
			return err
		}
		if err := j.unchanged(ctx, b.tx); err != nil {
			return err
		}
		if err := run(ctx, b.tx, rest...); err != nil {
			return err
		}
		if _, err := b.tx.Exec(ctx, `delete from kiloshard_adopt.copies where shard = $1`, int32(n)); err != nil {
			return err
		}
		return ledger.SetStage(ctx, b.tx, n, ledger.StageCopying, ledger.StageTables)
	})
	if err != nil {
		return fmt.Errorf("cutover of shard %d: %w", n, err)
	}
	j.report(Event{Kind: Cutover, Shards: set})
	return nil
}

// ofViews returns the statements that move the views of gate 1, and the functions of their triggers, to another schema. ALTER locks a view
// alone; LOCK would lock the old table as well.
func ofViews(ctx context.Context, q ledger.Querier, from, to string) ([]string, error) {
	const query = `
		select format('alter view %I.%I set schema %I', n.nspname, c.relname, $2::text) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relkind = 'v' and obj_description(c.oid, 'pg_class') = $3
		union all
		select format('alter function %s set schema %I', p.oid::regprocedure, $2::text) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
		where n.nspname = $1 and obj_description(p.oid, 'pg_proc') = $3 order by 1 desc`
	return texts(ctx, q, query, from, to, ledger.Mark)
}

// excludeVacuum takes the lock of a vacuum on the tables of a schema, which conflicts with no reader or writer. Postgres ends an
// autovacuum only after a statement has waited for it for deadlock_timeout: clients should not wait that long.
func excludeVacuum(ctx context.Context, tx pgx.Tx, tables []*structure.Table, schema string) error {
	all := []string{"set local lock_timeout = '10s'"}
	for _, t := range tables {
		all = append(all, fmt.Sprintf("lock table %s in share update exclusive mode", t.At(schema).SQL()))
	}
	return run(ctx, tx, all...)
}

// unchanged returns a [CheckError] if the structure of the old tables is not that of the ledger. No session can change it until the transaction ends.
func (j *job) unchanged(ctx context.Context, tx pgx.Tx) error {
	var all []string
	for _, t := range j.set.Tables {
		all = append(all, fmt.Sprintf("lock table %s in access share mode", t.Name.SQL()))
	}
	if err := run(ctx, tx, all...); err != nil {
		return err
	}
	return j.checkStructure(ctx, tx)
}

// validate checks the rows of shards by the foreign keys that were made at the cutover. Writers go on.
func (j *job) validate(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
	for _, t := range j.set.Tables {
		for _, statement := range t.Validate(j.cfg.Map.Schema(n)) {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("shard %d has tables, but %s: %w", n, statement, err)
			}
		}
	}
	j.report(Event{Kind: Validated, Shards: shards.SetOf(n)})
	return nil
}
