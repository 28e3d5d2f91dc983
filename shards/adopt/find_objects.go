package adopt

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/tables"
)

// objectQueries return rows of kind, schema and table, object and text. A table of an empty name is no table's.
var objectQueries = []string{
	`select 'trigger', n.nspname::text, c.relname::text, t.tgname::text, t.tgfoid::regprocedure::text || case t.tgenabled when 'D' then ', disabled' else '' end
	from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
	where not t.tgisinternal and t.tgparentid = 0 and c.relkind in ('r', 'p')
	and not exists (select from pg_proc f where f.oid = t.tgfoid and f.pronamespace = to_regnamespace('kiloshard_adopt')) order by 2, 3, 4`,

	`select 'rule', n.nspname::text, c.relname::text, r.rulename::text, 'rewrites statements'
	from pg_rewrite r join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
	where c.relkind in ('r', 'p') order by 2, 3, 4`,

	`select 'row-security', n.nspname::text, c.relname::text, '', (select count(*) from pg_policy p where p.polrelid = c.oid) || ' policies'
	from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where c.relrowsecurity and c.relkind in ('r', 'p') order by 2, 3`,

	`select distinct 'view', tn.nspname::text, t.relname::text, format('%I.%I', vn.nspname, v.relname), case v.relkind when 'm' then 'materialized view' else 'view' end
	from pg_rewrite r join pg_class v on v.oid = r.ev_class and v.relkind in ('v', 'm') join pg_namespace vn on vn.oid = v.relnamespace
	join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass and d.refobjid <> v.oid
	join pg_class t on t.oid = d.refobjid and t.relkind in ('r', 'p') join pg_namespace tn on tn.oid = t.relnamespace
	where vn.nspname !~ '^pg_' and vn.nspname <> 'information_schema' and not exists (select from pg_namespace n where n.oid = vn.oid and ` + tables.OfKiloshard + `) order by 2, 3, 4`,

	`select distinct 'type', n.nspname::text, c.relname::text, a.attname::text, format_type(e.oid, null) || case e.typtype when 'e' then ', an enum' when 'd' then ', a domain' else '' end
	from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p') join pg_namespace n on n.oid = c.relnamespace
	join pg_type y on y.oid = a.atttypid join pg_type e on e.oid = case when y.typcategory = 'A' and y.typelem <> 0 then y.typelem else y.oid end
	join pg_namespace tn on tn.oid = e.typnamespace
	where a.attnum > 0 and not a.attisdropped and tn.nspname <> 'pg_catalog' and e.typtype in ('e', 'd', 'c', 'r')
	and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = e.oid and d.deptype = 'e') order by 2, 3, 4`,

	`select 'exclusion', n.nspname::text, c.relname::text, x.conname::text, 'EXCLUDE'
	from pg_constraint x join pg_class c on c.oid = x.conrelid join pg_namespace n on n.oid = c.relnamespace
	where x.contype = 'x' and x.conparentid = 0 order by 2, 3, 4`,

	`select 'publication', schemaname::text, tablename::text, pubname::text, 'published' from pg_publication_tables order by 2, 3, 4`,

	`select 'extension', '', '', e.extname::text, e.extversion || ' in schema ' || quote_ident(n.nspname)
	from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname <> 'plpgsql' order by 4`,

	`select 'large-objects', '', '', '', count(*) || ' of them' from pg_largeobject_metadata having count(*) > 0`,
}

// findObjects finds what belongs to sharded tables, and what shards may need.
func (p *Plan) findObjects(ctx context.Context, tx pgx.Tx, add func(kind, table, object, text string)) error {
	for _, query := range objectQueries {
		rows, err := tx.Query(ctx, query)
		if err != nil {
			return err
		}
		var kind, object, text string
		var name tables.Name
		_, err = pgx.ForEachRow(rows, []any{&kind, &name.Schema, &name.Table, &object, &text}, func() error {
			if name.Table == "" {
				add(kind, "", object, text)
			} else if t := p.Table(name); t != nil && t.Is.Sharded() {
				add(kind, name.String(), object, text)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var word = regexp.MustCompile(`[\pL_][\pL\pN_$]*`)

// findFunctions finds functions of users whose body has the name of a sharded table.
func (p *Plan) findFunctions(ctx context.Context, tx pgx.Tx, add func(kind, table, object, text string)) error {
	names := map[string]string{}
	for _, t := range p.Tables {
		if t.Is.Sharded() {
			names[t.Table.Table] = t.Table.String()
		}
	}
	const query = `
		select f.oid::regprocedure::text, l.lanname::text, coalesce(pg_get_function_sqlbody(f.oid), f.prosrc)
		from pg_proc f join pg_namespace n on n.oid = f.pronamespace join pg_language l on l.oid = f.prolang
		where f.prokind in ('f', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not ` + tables.OfKiloshard + ` and l.lanname not in ('c', 'internal')
		and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = f.oid and d.deptype = 'e')
		order by 1`
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	var function, language, body string
	_, err = pgx.ForEachRow(rows, []any{&function, &language, &body}, func() error {
		var found []string
		for _, w := range word.FindAllString(body, -1) {
			if table, ok := names[w]; ok && !slices.Contains(found, table) {
				found = append(found, table)
			}
		}
		if len(found) > 0 {
			slices.Sort(found)
			add("function", "", function, language+", names "+strings.Join(found, ", "))
		}
		return nil
	})
	return err
}
