package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/mirror"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// KeptIn is the schema that has the old tables from [Finish] on, until they are dropped.
const KeptIn = "kiloshard_adopt_old"

// Finished is the result of [Finish].
type Finished struct {
	Kept    []string  `json:"kept"`    // old tables, in schema [KeptIn]
	Until   time.Time `json:"until"`   // they are kept at least
	Dropped []string  `json:"dropped"` // old tables
}

// Finish ends an adoption all of whose shards have tables: nothing is mirrored to the old tables any more, which move to schema [KeptIn], and
// [Back] is refused from its first step on. A shard whose IDs come from an old sequence gets one of its own: each skips the numbers of the
// others. That of the key stays where it is, and shards have no default for the key. The old tables are dropped by a call that is [Config.KeepFor] later, if [Config.Drop] allows it, and without CASCADE: the error of
// Postgres names what depends on them. Then the ledger of the adoption is removed. Finish can be run again after an error. The error is
// a [CheckError] if shards have views, or other tables have foreign keys to old ones; then nothing has changed.
func Finish(ctx context.Context, cfg Config) (Finished, error) {
	j, err := open(ctx, cfg)
	if err != nil {
		return Finished{}, err
	}
	defer j.close(ctx)
	if j.state.Gate != ledger.GateFinished && j.state.Gate != ledger.GateTables {
		rest := j.state.At(ledger.StageViews).Union(j.state.At(ledger.StageCopying))
		return Finished{}, &CheckError{Problems: []string{fmt.Sprintf("shards %s have no tables of their own; expected kiloshard adopt tables of all before", rest)}}
	}
	if j.state.Gate == ledger.GateTables {
		if err := j.checkReferred(ctx); err != nil {
			return Finished{}, err
		}
	}
	if err := j.finish(ctx); err != nil {
		return Finished{}, err
	}
	return j.dropOld(ctx)
}

// checkReferred returns a [CheckError] for foreign keys of other tables to old ones: they would refuse rows that refer to what is written
// from then on.
func (j *job) checkReferred(ctx context.Context) error {
	all, err := mirrored(ctx, j.conn, "old", "")
	if err != nil {
		return err
	}
	var names []string
	for _, t := range all {
		names = append(names, t.Name.SQL())
	}
	const query = `with old as (select unnest($1::text[])::regclass)
		select format('foreign key %I of table %s refers to %s, to which nothing is written from then on; expected alter table … drop constraint before', k.conname, k.conrelid::regclass, k.confrelid::regclass)
		from pg_constraint k where k.contype = 'f' and k.conparentid = 0 and k.confrelid in (table old) and k.conrelid not in (table old) order by 1`
	problems, err := texts(ctx, j.conn, query, names)
	if err == nil && len(problems) > 0 {
		err = &CheckError{Problems: problems}
	}
	return err
}

func (j *job) finish(ctx context.Context) error {
	there, err := j.remembers(ctx, j.conn)
	if err != nil || !there { // the old tables are out of the way
		return err
	}
	if j.state.Gate == ledger.GateTables { // before a mirror ends, so that nobody goes back without what it would have brought
		err := j.whileLocked(ctx, j.conn, shards.Set{}, "sequences", func(b budget) error {
			if err := j.interleave(ctx, b); err != nil {
				return err
			}
			return ledger.SetGate(ctx, b.tx, ledger.GateTables, ledger.GateFinished)
		})
		if err != nil {
			return err
		}
	}
	if err := each(ctx, j, slices.Collect(j.cfg.Map.All().All()), j.finishShard); err != nil {
		return err
	}
	j.report(Event{Kind: Ended, Text: "nothing is mirrored to the old tables any more"})
	return j.keepOld(ctx)
}

// mirrored returns the tables that have a trigger with a function of mirrors, whose name begins with kind, also those that a migration has
// renamed. With a schema it returns those of the schema only.
func mirrored(ctx context.Context, q ledger.Querier, kind, schema string) ([]*structure.Table, error) {
	const query = `select distinct n.nspname::text, c.relname::text from pg_trigger t join pg_proc p on p.oid = t.tgfoid and p.pronamespace = 'kiloshard_adopt'::regnamespace
		join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace where p.proname ~ ('^' || $1::text || '_[0-9]+$') and $2::text in ('', n.nspname::text) order by 1, 2`
	rows, err := q.Query(ctx, query, kind, schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*structure.Table, error) {
		t := &structure.Table{}
		return t, row.Scan(&t.Name.Schema, &t.Name.Table)
	})
}

// finishShard ends the mirrors of one shard.
func (j *job) finishShard(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
	schema := j.cfg.Map.Schema(n)
	return j.whileLocked(ctx, conn, shards.SetOf(n), fmt.Sprintf("end of the mirrors of shard %d", n), func(b budget) error {
		all, err := mirrored(ctx, b.tx, "new", schema)
		if err != nil {
			return err
		}
		if err := excludeVacuum(ctx, b.tx, all, schema); err != nil {
			return err
		}
		b = b.restart()
		for _, t := range all {
			if err := b.run(ctx, fmt.Sprintf("lock table %s in access exclusive mode", t.At(schema).SQL())); err != nil {
				return err
			}
		}
		sequences, err := j.ownSequences(ctx, b.tx, n)
		if err != nil {
			return err
		}
		views, err := texts(ctx, b.tx, `select format('drop view %I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where n.nspname = $1 and c.relkind = 'v' order by c.oid desc`, mirror.Views(n))
		if err != nil {
			return err
		}
		functions, err := texts(ctx, b.tx, `select 'drop function ' || p.oid::regprocedure from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1`, mirror.Views(n))
		if err != nil {
			return err
		}
		for _, t := range all {
			sequences = append(append(sequences, j.writer.OffNew(t, schema)...), fmt.Sprintf("revoke all on %s from kiloshard_adopt", t.At(schema).SQL()))
		}
		statements := slices.Concat(sequences, views, functions, []string{
			fmt.Sprintf("revoke usage on schema %s from kiloshard_adopt", schema),
			fmt.Sprintf("drop schema if exists %s", mirror.Views(n)), fmt.Sprintf("drop schema if exists %s", mirror.Hidden(n)),
		})
		return run(ctx, b.tx, statements...)
	})
}

// keepOld moves the old tables out of the way of names, and drops what mirrored them.
func (j *job) keepOld(ctx context.Context) error {
	all, err := mirrored(ctx, j.conn, "old", "")
	if err != nil {
		return err
	}
	for _, t := range all {
		err := j.whileLocked(ctx, j.conn, shards.Set{}, "keeping table "+t.Name.String(), func(b budget) error {
			owner, err := texts(ctx, b.tx, `select quote_ident(pg_get_userbyid(relowner)) from pg_class where oid = $1::text::regclass`, t.Name.SQL())
			if err != nil {
				return err
			}
			before, after, err := j.keepKey(ctx, b, t)
			if err != nil {
				return err
			}
			statements := append([]string{"create schema if not exists " + KeptIn, "grant usage, create on schema " + KeptIn + " to " + owner[0]}, j.writer.OffOld(t)...)
			statements = append(statements, fmt.Sprintf("drop trigger if exists kiloshard_adopt_record on %s", t.Name.SQL()), fmt.Sprintf("revoke all on %s from kiloshard_adopt", t.Name.SQL()))
			return b.run(ctx, slices.Concat(statements, before, []string{fmt.Sprintf("alter table %s set schema %s", t.Name.SQL(), KeptIn)}, after)...)
		})
		if err != nil {
			return fmt.Errorf("keeping table %s: %w", t.Name, err)
		}
	}
	return j.inTx(ctx, j.conn, func(tx pgx.Tx) error {
		names, err := texts(ctx, tx, `select p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'kiloshard_adopt'::regnamespace
			and pg_get_userbyid(p.proowner) = 'kiloshard_adopt' and p.proname ~ '^((old|new|defer|delete|cascade)_[0-9]+|refuse_.*)$' order by p.proname desc`)
		if err != nil {
			return err
		}
		// The role finds an argument's type by its schema.
		if err := run(ctx, tx, "grant usage on schema "+KeptIn+" to kiloshard_adopt"); err != nil {
			return err
		}
		if err := ledger.Own(ctx, tx, func(tx pgx.Tx) error { return run(ctx, tx, dropFunctions(names)...) }); err != nil {
			return err
		}
		return revokeOurs(ctx, tx)
	})
}

// dropOld drops the old tables when their time is over, and then the ledger.
func (j *job) dropOld(ctx context.Context) (f Finished, err error) {
	if f.Kept, err = texts(ctx, j.conn, `select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind = 'r' order by 1`, KeptIn); err != nil {
		return f, err
	}
	var left float64
	const query = `select at + make_interval(secs => $1), extract(epoch from at + make_interval(secs => $1) - clock_timestamp())::float8 from kiloshard_adopt.history where what = 'gate tables became finished' order by at desc limit 1`
	if err := j.conn.QueryRow(ctx, query, j.cfg.KeepFor.Seconds()).Scan(&f.Until, &left); err != nil {
		return f, err
	}
	if left > 0 || j.cfg.Drop == nil {
		return f, nil
	}
	if err := j.cfg.Drop(f.Kept); err != nil {
		return f, err
	}
	if len(f.Kept) > 0 {
		err = j.inTx(ctx, j.conn, func(tx pgx.Tx) error {
			return run(ctx, tx, "drop table "+strings.Join(f.Kept, ", "), "drop schema "+KeptIn)
		})
	}
	if err != nil {
		return f, fmt.Errorf("old tables: %w", err)
	}
	f.Dropped, f.Kept = f.Kept, nil
	j.report(Event{Kind: Dropped, Text: "the old tables"})
	return f, ledger.Remove(ctx, j.conn)
}
