package rows

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// openTables gives the old tables the triggers and foreign keys that they had, and lets everybody write them. All shards have views.
func (j *job) openTables(ctx context.Context) error {
	for _, t := range j.set.Tables {
		parts, err := j.opening(ctx, t)
		if err == nil {
			err = j.eachPart(ctx, "opening table "+t.Name.String(), parts)
		}
		if err != nil {
			return err
		}
	}
	var broken []error
	for _, t := range j.set.Tables {
		for _, l := range t.Links {
			if l.Crosses && l.Valid {
				statement := fmt.Sprintf("alter table %s validate constraint %s", t.Name.SQL(), quote(l.Name))
				if _, err := j.conn.Exec(ctx, statement); err != nil {
					broken = append(broken, fmt.Errorf("foreign key %s of table %s holds for new rows only: %w", l.Name, t.Name, err))
				}
			}
		}
	}
	if ctx.Err() != nil {
		return errors.Join(broken...)
	}
	err := j.inTx(ctx, j.conn, func(tx pgx.Tx) error {
		if err := j.dropOurs(ctx, tx); err != nil {
			return err
		}
		state, err := ledger.ReadIn(ctx, tx)
		if err == nil && state.Gate == ledger.GateClosed {
			err = ledger.SetGate(ctx, tx, ledger.GateClosed, ledger.GateViews)
		}
		if err != nil {
			return err
		}
		return keepStructure(ctx, tx, j.all())
	})
	if err == nil {
		j.report(Event{Kind: Opened, Text: "the old tables are as they were"})
	}
	return errors.Join(append(broken, err)...)
}

// opening returns the statements that change one old table, in parts that are transactions of their own.
func (j *job) opening(ctx context.Context, t *structure.Table) ([][]string, error) {
	name := t.Name.SQL()
	lock := fmt.Sprintf("lock table only %s in access exclusive mode", name)
	var parts [][]string
	for _, trigger := range t.Triggers {
		parts = append(parts, append([]string{lock, fmt.Sprintf("drop trigger if exists %s on %s", quote(trigger.Name), name)}, trigger.Statements(trigger.Definition, name)...))
	}
	present, err := texts(ctx, j.conn, `select conname::text from pg_constraint where conrelid = $1 and contype = 'f'`, t.OID)
	if err != nil {
		return nil, err
	}
	for _, l := range t.Links {
		switch there := slices.Contains(present, l.Name); {
		case l.Crosses && !there:
			part := []string{fmt.Sprintf("alter table %s add constraint %s %s", name, quote(l.Name), structure.NotValid(l.Definition))}
			if l.Comment != "" {
				part = append(part, fmt.Sprintf("comment on constraint %s on %s is %s", quote(l.Name), name, sqltext.Quote(l.Comment)))
			}
			parts = append(parts, part)
		case !l.Crosses && !l.Deferrable && there:
			parts = append(parts, []string{fmt.Sprintf("alter table %s alter constraint %s not deferrable", name, quote(l.Name))})
		}
	}
	return append(parts, append([]string{lock}, j.writer.Reopen(t)...)), nil
}

// dropOurs drops the functions of mirrors, and takes back what they needed.
func (j *job) dropOurs(ctx context.Context, tx pgx.Tx) error {
	names, _ := j.writer.Functions()
	if err := ledger.Own(ctx, tx, func(tx pgx.Tx) error { return run(ctx, tx, dropFunctions(names)...) }); err != nil {
		return err
	}
	var statements []string
	for _, t := range j.set.Tables {
		statements = append(statements, fmt.Sprintf("revoke all on %s from kiloshard_adopt", t.Name.SQL()))
	}
	if err := run(ctx, tx, statements...); err != nil {
		return err
	}
	return revokeOurs(ctx, tx)
}

// revokeOurs takes back what mirrors could do with schemas and the ledger, and drops the tables that this package has added to the ledger.
func revokeOurs(ctx context.Context, tx pgx.Tx) error {
	const query = `select distinct format('revoke all on schema %I from kiloshard_adopt', n.nspname) from pg_namespace n cross join aclexplode(n.nspacl) g
		where g.grantee = 'kiloshard_adopt'::regrole and n.nspname <> 'kiloshard_adopt'`
	statements, err := texts(ctx, tx, query)
	if err != nil {
		return err
	}
	return run(ctx, tx, append(statements, "drop table kiloshard_adopt.remembered, kiloshard_adopt.copies", "revoke update (changed_at) on kiloshard_adopt.shards from kiloshard_adopt")...)
}
