package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/tables"
)

// findIDs finds primary keys that cannot hold IDs, and IDs that JavaScript cannot.
func (p *Plan) findIDs(ctx context.Context, tx pgx.Tx, add func(kind, table, object, text string)) error {
	for _, t := range p.Tables {
		table := p.catalog.Table(t.Table)
		key := table.PrimaryKey()
		if !t.Is.Sharded() || len(key) != 1 || t.failed != nil {
			continue
		}
		column := table.Column(key[0])
		if !column.IsWhole() {
			continue
		}
		var largest *int64
		err := apart(ctx, tx, func(tx pgx.Tx) error {
			query := fmt.Sprintf("select max(%s)::bigint from %s", pgx.Identifier{column.Name}.Sanitize(), table.From())
			return tx.QueryRow(ctx, query).Scan(&largest)
		})
		if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
			continue // a role that may not read the table: its rows are not counted either
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.Table, err)
		}
		at := "no rows"
		if largest != nil {
			at = fmt.Sprintf("the largest is %d", *largest)
		}
		if column.Type != "bigint" {
			add("int4-id", t.Table.String(), column.Name, column.Type+": "+at)
		}
		if largest != nil && *largest > 1<<53 {
			add("beyond-2-53", t.Table.String(), column.Name, at)
		}
	}
	return nil
}

// findSequences finds sequences that code draws from, or several columns.
func (p *Plan) findSequences(ctx context.Context, tx pgx.Tx, add func(kind, table, object, text string)) error {
	users := map[string][]string{}
	for _, t := range p.catalog.Tables {
		for _, c := range t.Columns {
			if c.Sequence != "" {
				users[c.Sequence] = append(users[c.Sequence], t.Name.String()+"."+c.Name)
			}
		}
	}
	const query = `
		select format('%I.%I', n.nspname, c.relname), n.nspname::text, c.relname::text
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'S' and c.relpersistence <> 't' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not ` + tables.OfKiloshard + `
		and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
		order by 1`
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	var written, schema, name string
	_, err = pgx.ForEachRow(rows, []any{&written, &schema, &name}, func() error {
		switch by := users[written]; len(by) {
		case 0:
			add("sequence", "", written, "no column draws from it by default")
		case 1:
		default:
			slices.Sort(by)
			add("sequence", "", written, "drawn from by "+strings.Join(by, ", "))
		}
		return nil
	})
	return err
}
