package views

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
)

// existing is a view of ours that a shard's schema has.
type existing struct {
	Name     string
	Columns  []string // with types
	Defaults []string // columns that have one
	Triggers []string
	Roles    []string // that have rights, but the owner; empty for PUBLIC
}

// existingQuery reads the views of ours in a schema, $1, by their comment, $2.
const existingQuery = `
	select c.relname::text,
		array(select a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || coalesce(' collate ' || nullif(a.attcollation, 0)::regcollation, '')
			from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum),
		array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.atthasdef and a.attnum > 0 order by a.attnum),
		array(select t.tgname::text from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal order by 1),
		array(select distinct case g.grantee when 0 then '' else pg_get_userbyid(g.grantee)::text end
			from (select c.relacl union all select a.attacl from pg_attribute a where a.attrelid = c.oid) l (acl) cross join aclexplode(l.acl) g where g.grantee <> c.relowner)
	from pg_class c where c.relnamespace = $1::text::regnamespace and c.relkind = 'v' and obj_description(c.oid, 'pg_class') = $2
	order by c.oid`

func readExisting(ctx context.Context, tx pgx.Tx, schema string) ([]existing, error) {
	rows, err := tx.Query(ctx, existingQuery, quote(schema), ledger.Mark)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[existing])
}

// oldFunctions returns statements that drop the trigger functions of ours in a schema.
func oldFunctions(ctx context.Context, tx pgx.Tx, schema string) ([]string, error) {
	const query = `select 'drop function ' || p.oid::regprocedure from pg_proc p
		where p.pronamespace = $1::text::regnamespace and obj_description(p.oid, 'pg_proc') = $2 order by p.oid`
	rows, err := tx.Query(ctx, query, quote(schema), ledger.Mark)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// remake returns the statements that make the views of a shard out of those that it has. A view whose columns are as before, with more at
// the end, is replaced: then clients that have prepared a statement go on. Others are dropped and made.
func (k *maker) remake(ctx context.Context, tx pgx.Tx, n shards.Number, all []view) ([]string, error) {
	schema := k.m.Schema(n)
	had, err := readExisting(ctx, tx, schema)
	if err != nil {
		return nil, err
	}
	var drop, work []string
	keep := map[string]existing{}
	for _, e := range had {
		i := slices.IndexFunc(all, func(v view) bool { return v.plain == e.Name })
		if i >= 0 && all[i].continues(e) {
			keep[e.Name] = e
			for _, name := range e.Triggers {
				drop = append(drop, fmt.Sprintf("drop trigger %s on %s", quote(name), all[i].name))
			}
			continue
		}
		drop = append([]string{"drop view " + quote(schema, e.Name)}, drop...) // views on views were made later
	}
	functions, err := oldFunctions(ctx, tx, schema)
	if err != nil {
		return nil, err
	}
	drop = append(drop, functions...)
	for _, v := range all {
		e, kept := keep[v.plain]
		create := "create view "
		if kept {
			create = "create or replace view "
		}
		work = append(work, create+v.name+v.query)
		for _, column := range e.Defaults {
			work = append(work, fmt.Sprintf("alter view %s alter column %s drop default", v.name, quote(column)))
		}
		for _, role := range e.Roles {
			if role == "" {
				work = append(work, fmt.Sprintf("revoke all on %s from public", v.name))
			} else {
				work = append(work, fmt.Sprintf("revoke all on %s from %s cascade", v.name, quote(role)))
			}
		}
		work = append(work, fmt.Sprintf("comment on view %s is %s", v.name, literal(ledger.Mark)))
		for _, part := range v.defaults {
			work = append(work, fmt.Sprintf("alter view %s %s", v.name, part))
		}
		work = append(work, v.grants...)
		work = append(work, v.after...)
	}
	return append(drop, work...), nil
}

// continues reports whether CREATE OR REPLACE VIEW can make the view out of an existing one.
func (v view) continues(e existing) bool {
	if len(e.Columns) > len(v.columns) {
		return false
	}
	for i, column := range e.Columns {
		if column != v.columns[i].Name+" "+v.columns[i].Type {
			return false
		}
	}
	return true
}

// script joins statements.
func script(statements []string) string { return strings.Join(statements, ";\n") }
