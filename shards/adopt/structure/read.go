package structure

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// Querier is a session whose search_path has nothing but pg_catalog, or a transaction of one.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// Read reads the sharded tables of a plan from the catalog, as they are. The file may be nil. ctx governs the queries.
func Read(ctx context.Context, q Querier, plan *adopt.Plan, file *adopt.File) (*Set, error) {
	s := &Set{}
	for _, name := range plan.Order {
		t := &Table{Name: name, Route: plan.Table(name).Way()}
		if file != nil {
			t.Keyless = slices.ContainsFunc(file.Tables, func(d adopt.Decision) bool { return d.Table == name && d.Keyless == adopt.Left })
		}
		s.Tables = append(s.Tables, t)
	}
	for _, part := range []struct {
		what string
		read func(context.Context, Querier, *adopt.Plan) error
	}{
		{"tables", s.readTables}, {"columns", s.readColumns}, {"constraints and indexes", s.readObjects}, {"foreign keys", s.readLinks}, {"rights", s.readRights}, {"names", s.checkNames},
	} {
		if err := part.read(ctx, q, plan); err != nil {
			return nil, fmt.Errorf("%s: %w", part.what, err)
		}
	}
	s.findKeys(plan)
	s.checkLinks()
	s.checkRoutes()
	return s, nil
}

func (s *Set) problem(t *Table, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{t.Name, fmt.Sprintf(format, args...)})
}

// args returns the tables as arguments of a query.
func (s *Set) args() []any {
	var schemas, names []string
	for _, t := range s.Tables {
		schemas, names = append(schemas, t.Name.Schema), append(names, t.Name.Table)
	}
	return []any{schemas, names}
}

// ours are the tables by number, in a query with the arguments of [Set.args].
const ours = `with ours as materialized (
	select u.i::int, c.* from unnest($1::text[], $2::text[]) with ordinality u (schema, name, i)
	join pg_namespace n on n.nspname = u.schema join pg_class c on c.relnamespace = n.oid and c.relname = u.name) `

func (s *Set) readTables(ctx context.Context, q Querier, _ *adopt.Plan) error {
	const query = ours + `
		select o.i, o.oid, pg_get_userbyid(o.relowner)::text, o.relreplident::text, coalesce(obj_description(o.oid, 'pg_class'), ''),
			coalesce(o.reloptions, '{}') || array(select 'toast.' || unnest(t.reloptions) from pg_class t where t.oid = o.reltoastrelid),
			concat_ws(', ', case o.relkind when 'r' then null when 'p' then 'it is partitioned' when 'f' then 'it is a foreign table' else 'it is no table' end,
				case when o.relpersistence <> 'p' then 'it is unlogged' end,
				case when o.reloftype <> 0 then 'it has a type' end, case when o.relrowsecurity then 'it has row security' end,
				case when exists (select from pg_rewrite r where r.ev_class = o.oid) then 'it has rules' end,
				case when o.relkind <> 'p' and exists (select from pg_inherits h where o.oid in (h.inhrelid, h.inhparent))
					then 'it inherits, or others inherit from it' end)
		from ours o order by o.i`
	rows, err := q.Query(ctx, query, s.args()...)
	if err != nil {
		return err
	}
	var i, found int
	var read Table
	var wrong string
	_, err = pgx.ForEachRow(rows, []any{&i, &read.OID, &read.Owner, &read.identity, &read.comment, &read.options, &wrong}, func() error {
		t := s.Tables[i-1]
		t.OID, t.Owner, t.identity, t.comment, t.options = read.OID, read.Owner, read.identity, read.comment, slices.Clone(read.options)
		if found++; wrong != "" {
			s.problem(t, "%s; expected an ordinary table", wrong)
		}
		return nil
	})
	if err == nil && found < len(s.Tables) {
		err = fmt.Errorf("%d of %d tables are there", found, len(s.Tables))
	}
	return err
}

func (s *Set) readColumns(ctx context.Context, q Querier, plan *adopt.Plan) error {
	const query = ours + `
		select o.i, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attgenerated <> '', a.attidentity <> '', a.attidentity = 'a',
			coalesce(case when a.attidentity <> '' then pg_get_serial_sequence(format('%I.%I', n.nspname, o.relname), a.attname) end, '')
		from ours o join pg_namespace n on n.oid = o.relnamespace join pg_attribute a on a.attrelid = o.oid
		where a.attnum > 0 and not a.attisdropped order by o.i, a.attnum`
	rows, err := q.Query(ctx, query, s.args()...)
	if err != nil {
		return err
	}
	var i int
	var c Column
	_, err = pgx.ForEachRow(rows, []any{&i, &c.Name, &c.Type, &c.Generated, &c.Identity, &c.Always, &c.Sequence}, func() error {
		t := s.Tables[i-1]
		c.Schema = plan.Catalog().Table(t.Name).Column(c.Name).Schema
		t.Columns = append(t.Columns, c)
		return nil
	})
	return err
}

// readObjects reads constraints other than foreign keys, indexes, and triggers but those of the ledger.
func (s *Set) readObjects(ctx context.Context, q Querier, _ *adopt.Plan) error {
	const query = ours + `
		select o.i, 'constraint', k.conname::text, pg_get_constraintdef(k.oid), coalesce(obj_description(k.oid, 'pg_constraint'), ''), '', k.convalidated,
			k.condeferrable, false from ours o join pg_constraint k on k.conrelid = o.oid and k.contype in ('c', 'p', 'u', 'x')
		union all
		select o.i, 'index', c.relname::text, pg_get_indexdef(c.oid), coalesce(obj_description(c.oid, 'pg_class'), ''), '', x.indisvalid and x.indisready, false, false
		from ours o join pg_index x on x.indrelid = o.oid join pg_class c on c.oid = x.indexrelid
		where not exists (select from pg_constraint k where k.conindid = c.oid and k.conrelid = o.oid)
		union all
		select o.i, 'trigger', t.tgname::text, pg_get_triggerdef(t.oid), coalesce(obj_description(t.oid, 'pg_trigger'), ''), t.tgenabled::text, true, false, t.tgtype & 1 = 1
		from ours o join pg_trigger t on t.tgrelid = o.oid and not t.tgisinternal join pg_proc f on f.oid = t.tgfoid
		where f.pronamespace is distinct from to_regnamespace('kiloshard_adopt')
		order by 1, 2, 3`
	rows, err := q.Query(ctx, query, s.args()...)
	if err != nil {
		return err
	}
	var i int
	var kind string
	var o Object
	var deferrable bool
	_, err = pgx.ForEachRow(rows, []any{&i, &kind, &o.Name, &o.Definition, &o.Comment, &o.Enabled, &o.Valid, &deferrable, &o.Row}, func() error {
		t := s.Tables[i-1]
		switch {
		case deferrable:
			s.problem(t, "constraint %s is deferrable; expected one that is checked at once, since rows are mirrored one by one", o.Name)
		case kind == "constraint" && !o.Valid:
			s.problem(t, "constraint %s is not valid; expected alter table … validate constraint, or drop constraint, before", o.Name)
		case !o.Valid:
			s.problem(t, "index %s is not valid; expected it to be dropped, or made again", o.Name)
		}
		switch kind {
		case "constraint":
			t.Constraints = append(t.Constraints, o)
		case "index":
			t.Indexes = append(t.Indexes, o)
		default:
			t.Triggers = append(t.Triggers, o)
		}
		return nil
	})
	return err
}

func (s *Set) readLinks(ctx context.Context, q Querier, plan *adopt.Plan) error {
	const query = ours + `
		select o.i, r.i, k.conname::text, pg_get_constraintdef(k.oid), coalesce(obj_description(k.oid, 'pg_constraint'), ''), k.convalidated, k.condeferrable,
			k.confdeltype::text, k.confupdtype::text, coalesce(to_jsonb(k) ->> 'conenforced', 'true')::boolean, coalesce(to_jsonb(k) ->> 'conperiod', 'false')::boolean,
			array(select a.attname::text from unnest(k.conkey) with ordinality u (n, i) join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.n order by u.i),
			array(select a.attname::text from unnest(k.confkey) with ordinality u (n, i) join pg_attribute a on a.attrelid = k.confrelid and a.attnum = u.n order by u.i)
		from ours o join pg_constraint k on k.conrelid = o.oid and k.contype = 'f' join ours r on r.oid = k.confrelid order by 1, 3`
	rows, err := q.Query(ctx, query, s.args()...)
	if err != nil {
		return err
	}
	var from, to int
	var l Link
	var enforced, period bool // from Postgres 18 on
	targets := []any{&from, &to, &l.Name, &l.Definition, &l.Comment, &l.Valid, &l.Deferrable, &l.OnDelete, &l.OnUpdate, &enforced, &period, &l.Columns, &l.References}
	_, err = pgx.ForEachRow(rows, targets, func() error {
		t := s.Tables[from-1]
		switch {
		case !enforced:
			s.problem(t, "foreign key %s is not enforced; expected alter table … drop constraint before", l.Name)
		case period:
			s.problem(t, "foreign key %s refers to a period; expected one that compares by =", l.Name)
		}
		link := l
		link.From, link.To = t.Name, s.Tables[to-1].Name
		link.Columns, link.References = slices.Clone(l.Columns), slices.Clone(l.References)
		link.Crosses = plan.Table(t.Name).Crosses(l.Name)
		t.Links = append(t.Links, link)
		return nil
	})
	return err
}

func (s *Set) readRights(ctx context.Context, q Querier, _ *adopt.Plan) error {
	const query = ours + `
		select o.i, '', case g.grantee when 0 then '' else pg_get_userbyid(g.grantee)::text end, g.privilege_type, g.is_grantable
		from ours o cross join lateral aclexplode(o.relacl) g where g.grantee <> o.relowner
		union all
		select o.i, a.attname::text, case g.grantee when 0 then '' else pg_get_userbyid(g.grantee)::text end, g.privilege_type, g.is_grantable
		from ours o join pg_attribute a on a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped cross join lateral aclexplode(a.attacl) g
		where g.grantee <> o.relowner order by 1, 2, 3, 4`
	rows, err := q.Query(ctx, query, s.args()...)
	if err != nil {
		return err
	}
	var i int
	var g Grant
	_, err = pgx.ForEachRow(rows, []any{&i, &g.Column, &g.Role, &g.Privilege, &g.Grantable}, func() error {
		if g.Role != "kiloshard_adopt" {
			s.Tables[i-1].rights = append(s.Tables[i-1].rights, g)
		}
		return nil
	})
	return err
}

// checkNames refuses names that tables, indexes or sequences of two schemas have: a shard has one schema.
func (s *Set) checkNames(ctx context.Context, q Querier, _ *adopt.Plan) error {
	const query = ours + `
		select c.relname::text, string_agg(n.nspname, ' and ' order by n.nspname) from (
			select o.oid from ours o
			union all select x.indexrelid from ours o join pg_index x on x.indrelid = o.oid
			union all select d.objid from ours o join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = o.oid and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i')
				join pg_class k on k.oid = d.objid and k.relkind = 'S'
		) r join pg_class c on c.oid = r.oid join pg_namespace n on n.oid = c.relnamespace group by 1 having count(*) > 1 order by 1`
	rows, err := q.Query(ctx, query, s.args()...)
	if err != nil {
		return err
	}
	var name, schemas string
	_, err = pgx.ForEachRow(rows, []any{&name, &schemas}, func() error {
		s.Problems = append(s.Problems, Problem{Text: fmt.Sprintf("%s is in schemas %s; expected another name in one of them, since a shard has one schema", quote(name), schemas)})
		return nil
	})
	return err
}

// findKeys chooses the key of each table, its primary key if it has one.
func (s *Set) findKeys(plan *adopt.Plan) {
	for _, t := range s.Tables {
		table := plan.Catalog().Table(t.Name)
		i := slices.IndexFunc(table.Keys, func(k tables.UniqueKey) bool {
			return !k.Partial && !k.Computed && !k.Deferrable && len(k.Columns) > 0 &&
				!slices.ContainsFunc(k.Columns, func(name string) bool { return !table.Column(name).NotNull })
		})
		if i < 0 {
			s.problem(t, "no primary key, and no unique key of columns that are not null; expected one, by which rows are mirrored, not one WITHOUT OVERLAPS")
			continue
		}
		t.Key = table.Keys[i].Columns
	}
}

// checkLinks refuses what foreign keys could do to the old tables in a way that mirrors cannot do themselves.
func (s *Set) checkLinks() {
	for _, t := range s.Tables {
		for _, l := range t.Links {
			if l.Crosses || !l.acts() {
				continue
			}
			for _, o := range t.Triggers {
				if !o.Row {
					s.problem(t, "trigger %s fires once a statement, and would fire a second time for what foreign key %s does in the old table; expected FOR EACH ROW", o.Name, l.Name)
				}
			}
			for _, child := range s.Tables {
				for _, other := range child.Links {
					if other.To == t.Name && !other.Crosses && other.OnUpdate != "a" && other.OnUpdate != "r" && l.OnUpdate != "a" && l.OnUpdate != "r" &&
						slices.ContainsFunc(other.References, func(name string) bool { return slices.Contains(l.Columns, name) }) {
						s.problem(t, "foreign key %s changes columns that foreign key %s of %s refers to, which follows them; expected one of the two without ON UPDATE", l.Name, other.Name, child.Name)
					}
				}
			}
		}
	}
}

// acts reports whether the foreign key changes or deletes rows.
func (l Link) acts() bool {
	return l.OnDelete != "a" && l.OnDelete != "r" || l.OnUpdate != "a" && l.OnUpdate != "r"
}

// checkRoutes refuses chains without foreign keys: their rows could lose their shard unnoticed.
func (s *Set) checkRoutes() {
	for _, t := range s.Tables {
		for _, link := range t.Route.Links {
			from := s.Table(link.From)
			if from == nil || !link.Declared || !slices.ContainsFunc(from.Links, func(l Link) bool { return l.Name == link.Name && l.Valid && !l.Crosses }) {
				s.problem(t, "it reaches the key by %s, which is no valid foreign key of the database; expected alter table … add foreign key", link.Name)
			}
		}
	}
}
