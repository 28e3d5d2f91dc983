package rows

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// closeTables has the old tables refuse writes without a shard's path, and changes of a row's shard. Each table is one transaction.
func (j *job) closeTables(ctx context.Context) error {
	if j.state.Gate != ledger.GateViews {
		return nil
	}
	if err := j.remember(ctx); err != nil {
		return err
	}
	if err := j.inTx(ctx, j.conn, j.makeFunctions(ctx)); err != nil {
		return err
	}
	for _, t := range j.set.Tables {
		parts, err := j.closing(t)
		if err == nil {
			err = j.eachPart(ctx, "closing table "+t.Name.String(), parts)
		}
		if err != nil {
			return err
		}
	}
	err := j.inTx(ctx, j.conn, func(tx pgx.Tx) error {
		if err := ledger.SetGate(ctx, tx, ledger.GateViews, ledger.GateClosed); err != nil {
			return err
		}
		return keepStructure(ctx, tx, j.set.Names())
	})
	if err != nil {
		return err
	}
	j.report(Event{Kind: Closed, Text: "the old tables refuse writes without a shard's path"})
	return j.read(ctx)
}

// eachPart runs statements of each part in a transaction of its own, again and again while locks are not free.
func (j *job) eachPart(ctx context.Context, what string, parts [][]string) error {
	for _, part := range parts {
		if err := j.whileLocked(ctx, j.conn, shards.Set{}, what, func(b budget) error { return b.run(ctx, part...) }); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// keepStructure writes the structure of the old tables into the ledger, after a change of ours.
func keepStructure(ctx context.Context, tx pgx.Tx, names []tables.Name) error {
	text, err := ledger.Structure(ctx, tx, names)
	if err != nil {
		return err
	}
	return ledger.SetStructure(ctx, tx, text)
}

// names returns the tables whose structure the ledger has: all of gate 1, and the sharded ones once they are closed.
func (j *job) names() []tables.Name {
	if j.state.Gate != ledger.GateViews {
		return j.set.Names()
	}
	return j.all()
}

// all returns all tables of the plan.
func (j *job) all() []tables.Name {
	var all []tables.Name
	for _, t := range j.plan.Catalog().Tables {
		all = append(all, t.Name)
	}
	return all
}

// makeFunctions makes the functions of mirrors, and grants what they need.
func (j *job) makeFunctions(ctx context.Context) func(pgx.Tx) error {
	return func(tx pgx.Tx) error {
		names, statements := j.writer.Functions()
		var grants []string
		var schemas []string
		for _, t := range j.set.Tables {
			grants = append(grants, fmt.Sprintf("grant select, insert, update, delete on %s to kiloshard_adopt", t.Name.SQL()))
			schemas = append(schemas, t.Name.Schema)
			for _, c := range t.Columns {
				schemas = append(schemas, c.Schema)
			}
		}
		slices.Sort(schemas)
		for _, schema := range slices.Compact(schemas) {
			if schema != "" {
				grants = append(grants, fmt.Sprintf("grant usage on schema %s to kiloshard_adopt", quote(schema)))
			}
		}
		if err := run(ctx, tx, grants...); err != nil {
			return err
		}
		return own(ctx, tx, names, append(dropFunctions(names), statements...))
	}
}

// dropFunctions drops functions of a command that was killed: another role owns them by now.
func dropFunctions(names []string) []string {
	all := []string{"set local role kiloshard_adopt"}
	for _, name := range names {
		all = append(all, "drop function if exists "+name+" cascade") // their triggers of the old tables are made again
	}
	return append(all, "reset role")
}

// closing returns the statements that change one old table, in parts that are transactions of their own: one that waits for a second table
// while it has locked the first keeps clients waiting.
func (j *job) closing(t *structure.Table) ([][]string, error) {
	table := t.Name.SQL()
	lock := fmt.Sprintf("lock table only %s in access exclusive mode", table)
	parts := [][]string{append([]string{lock}, j.writer.OnOld(t)...)}
	for _, trigger := range t.Triggers {
		definition, err := structure.NotByMirror(trigger.Definition)
		if err != nil {
			return nil, err
		}
		parts = append(parts, append([]string{lock, fmt.Sprintf("drop trigger if exists %s on %s", quote(trigger.Name), table)}, trigger.Statements(definition, table)...))
	}
	for _, l := range t.Links {
		switch {
		case l.Crosses:
			parts = append(parts, []string{fmt.Sprintf("alter table %s drop constraint if exists %s", table, quote(l.Name))})
		case !l.Deferrable:
			parts = append(parts, []string{fmt.Sprintf("alter table %s alter constraint %s deferrable", table, quote(l.Name))})
		}
	}
	return parts, nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
