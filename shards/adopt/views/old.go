package views

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// oldTable is what a view needs to know of a sharded table.
type oldTable struct {
	*adopt.TablePlan
	from    string // for the FROM of a statement
	owner   string // role
	columns []oldColumn
	grants  []structure.Grant
}

// oldColumn is a column of an old table.
type oldColumn struct {
	Name      string
	Type      string // with its collation
	Default   string // an expression; empty for none
	Identity  bool
	Generated bool
}

// readOld reads the sharded tables of a plan.
func readOld(ctx context.Context, tx pgx.Tx, p *adopt.Plan) ([]*oldTable, error) {
	var found []*oldTable
	for _, t := range p.Tables {
		if !t.Is.Sharded() {
			continue
		}
		o := &oldTable{TablePlan: t, from: p.Catalog().Table(t.Table).From()}
		if err := o.read(ctx, tx); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Table, err)
		}
		found = append(found, o)
	}
	return found, checkNames(found)
}

func (o *oldTable) read(ctx context.Context, tx pgx.Tx) error {
	const owner = `select pg_get_userbyid(relowner)::text from pg_class where oid = $1::text::regclass`
	if err := tx.QueryRow(ctx, owner, o.Table.SQL()).Scan(&o.owner); err != nil {
		return err
	}
	const columns = `
		select a.attname::text, format_type(a.atttypid, a.atttypmod) || coalesce(' collate ' || nullif(a.attcollation, 0)::regcollation, ''),
			coalesce(case when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end, ''), a.attidentity <> '', a.attgenerated <> ''
		from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
		where a.attrelid = $1::text::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`
	rows, err := tx.Query(ctx, columns, o.Table.SQL())
	if err != nil {
		return err
	}
	if o.columns, err = pgx.CollectRows(rows, pgx.RowToStructByPos[oldColumn]); err != nil {
		return err
	}
	const grants = `
		select case g.grantee when 0 then '' else pg_get_userbyid(g.grantee)::text end, g.privilege_type, '', g.is_grantable
		from pg_class c cross join aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) g
		where c.oid = $1::text::regclass and g.privilege_type in ('SELECT', 'INSERT', 'UPDATE', 'DELETE') and pg_get_userbyid(g.grantee) <> 'kiloshard_adopt'
		union all
		select case g.grantee when 0 then '' else pg_get_userbyid(g.grantee)::text end, g.privilege_type, a.attname::text, g.is_grantable
		from pg_attribute a cross join aclexplode(a.attacl) g
		where a.attrelid = $1::text::regclass and a.attnum > 0 and not a.attisdropped and g.privilege_type in ('SELECT', 'INSERT', 'UPDATE')
			and pg_get_userbyid(g.grantee) <> 'kiloshard_adopt'
		order by 1, 3, 2`
	if rows, err = tx.Query(ctx, grants, o.Table.SQL()); err != nil {
		return err
	}
	o.grants, err = pgx.CollectRows(rows, pgx.RowToStructByPos[structure.Grant])
	return err
}

// checkNames returns an error if two sharded tables would have one name in a shard's schema, or one of Kiloshard's.
func checkNames(all []*oldTable) error {
	seen := map[string]tables.Name{}
	for _, o := range all {
		name := o.Table.Table
		if other, ok := seen[name]; ok {
			return &shards.FieldError{Field: "tables", Found: fmt.Sprintf("%s and %s", other, o.Table), Expected: "sharded tables of different names, since a shard is one schema"}
		}
		seen[name] = o.Table
		if slices.Contains([]string{"next_id_seq", "schema_version"}, name) || len(name) >= 10 && name[:10] == "kiloshard_" {
			return &shards.FieldError{Field: "tables", Found: o.Table.String(), Expected: "a name that Kiloshard does not use in the schemas of shards: rename the table"}
		}
	}
	return nil
}
