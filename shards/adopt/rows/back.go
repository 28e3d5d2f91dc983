package rows

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/mirror"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// Back has all shards be views over the old tables again, and opens those for writes without a shard's path: triggers and foreign keys
// are as they were before. Clients go on. It works from any point, also where another command was killed, and can be run again. On a full disk it
// needs some room for catalogs, and frees what the copy took.
// The error is a [CheckError] if shards have structure that the old tables lack, or if the adoption is finished; then nothing has changed.
func Back(ctx context.Context, cfg Config) (Result, error) {
	return work(ctx, cfg, (*job).goBack)
}

func (j *job) goBack(ctx context.Context) error {
	if j.state.Gate == ledger.GateFinished {
		return &CheckError{Problems: []string{"this adoption is finished: what was written since is not in the old tables"}}
	}
	there, err := j.remembers(ctx, j.conn)
	if err != nil || !there {
		return err
	}
	if err := j.readStructure(ctx); err != nil {
		return err
	}
	if err := j.checkNew(ctx); err != nil {
		return err
	}
	if err := j.leaveTables(ctx); err != nil {
		return err
	}
	if err := j.leaveCopies(ctx); err != nil {
		return err
	}
	return j.openTables(ctx)
}

// checkNew returns a [CheckError] if tables of shards are missing, have columns that the old ones lack, or lack some: their values would be lost.
func (j *job) checkNew(ctx context.Context) error {
	e := &CheckError{}
	const query = `
		with columns as (
			select n.nspname, c.relname, array_agg(format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod)) order by a.attname) as list
			from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
			where c.relkind = 'r' and a.attnum > 0 and not a.attisdropped group by 1, 2
		)
		select format('%I.%I', x.schema, o.relname) || case when s.list is null then ' is missing, unlike ' when s.list @> o.list then ' has other columns than ' else ' lacks columns of ' end
			|| format('%I.%I', o.nspname, o.relname)
		from columns o cross join unnest($3::text[]) x (schema) left join columns s on s.relname = o.relname and s.nspname = x.schema
		where o.nspname = $1 and o.relname = $2 and s.list is distinct from o.list order by 1`
	schemas := j.cfg.Map.Schemas(slices.Collect(j.state.At(ledger.StageTables).All()))
	for _, t := range j.set.Tables {
		found, err := texts(ctx, j.conn, query, t.Name.Schema, t.Name.Table, schemas)
		if err != nil {
			return err
		}
		for _, f := range found {
			e.Problems = append(e.Problems, "table "+f+": expected the same, since rows go back there; undo the migration that changed it")
		}
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// leaveTables puts views in the place of the tables of shards, after a comparison. What was written to the tables is in the old ones.
func (j *job) leaveTables(ctx context.Context) error {
	set := j.state.At(ledger.StageTables)
	if set.Len() == 0 {
		return nil
	}
	err := each(ctx, j, j.set.Tables, func(ctx context.Context, conn *pgx.Conn, t *structure.Table) error {
		return j.compareTable(ctx, conn, t, set, j.cfg.Map.Schema)
	})
	if err != nil {
		return err
	}
	return each(ctx, j, slices.Collect(set.All()), j.cutBack)
}

// cutBack puts the views of a shard in the place of its tables. The tables stay, hidden, until nobody mirrors rows to them.
func (j *job) cutBack(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
	schema, hidden, views := j.cfg.Map.Schema(n), mirror.Hidden(n), mirror.Views(n)
	var locks, rest []string
	for _, t := range j.set.Tables {
		locks = append(locks, fmt.Sprintf("alter table %s set schema %s", t.At(schema).SQL(), hidden))
	}
	for _, t := range j.set.Tables {
		rest = append(rest, j.writer.OffNew(t, hidden)...)
	}
	again, err := ofViews(ctx, conn, views, schema)
	if err != nil {
		return err
	}
	rest = append(rest, again...)
	rest = append(rest, fmt.Sprintf("drop table if exists %s.schema_version", schema), fmt.Sprintf("revoke usage on schema %s from kiloshard_adopt", schema)) // the table is tern's
	set := shards.SetOf(n)
	err = j.whileLocked(ctx, conn, set, fmt.Sprintf("shard %d's way back", n), func(b budget) error {
		if err := excludeVacuum(ctx, b.tx, j.set.Tables, schema); err != nil {
			return err
		}
		if err := b.restart().run(ctx, locks...); err != nil {
			return err
		}
		if err := run(ctx, b.tx, rest...); err != nil {
			return err
		}
		return ledger.SetStage(ctx, b.tx, n, ledger.StageTables, ledger.StageViews)
	})
	if err != nil {
		return fmt.Errorf("shard %d's way back: %w", n, err)
	}
	j.report(Event{Kind: Reverted, Shards: set})
	return nil
}

// leaveCopies ends copies, and drops all hidden tables.
func (j *job) leaveCopies(ctx context.Context) error {
	set := j.state.At(ledger.StageCopying)
	err := j.inTx(ctx, j.conn, func(tx pgx.Tx) error {
		for n := range set.All() {
			if err := ledger.SetStage(ctx, tx, n, ledger.StageCopying, ledger.StageViews); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `delete from kiloshard_adopt.copies`); err != nil {
			return err
		}
		if state, err := ledger.ReadIn(ctx, tx); err != nil || state.Gate != ledger.GateTables {
			return err
		}
		return ledger.SetGate(ctx, tx, ledger.GateTables, ledger.GateClosed)
	})
	if err != nil {
		return err
	}
	// A transaction that has read the stage copying may write to a hidden table.
	if err := j.awaitOlder(ctx, set, "end of copies"); err != nil {
		return err
	}
	return each(ctx, j, slices.Collect(j.cfg.Map.All().All()), func(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
		return j.inTx(ctx, conn, func(tx pgx.Tx) error {
			return run(ctx, tx, fmt.Sprintf("drop schema if exists %s cascade", mirror.Hidden(n)), fmt.Sprintf("drop schema if exists %s", mirror.Views(n)))
		})
	})
}
