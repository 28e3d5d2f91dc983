package rows

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// sequence is an old one, from which tables of shards have drawn IDs.
type sequence struct {
	Name, Plain          string // as SQL with the schema, and without quotes and schema
	Type, Owner          string // as SQL
	Step, Min, Max, Keep int64
	Cycle                bool
	Key                  bool // the key of the adoption draws from it
}

// make returns the statement that makes one like it.
func (s sequence) make(name string) string {
	cycle := ""
	if s.Cycle {
		cycle = " CYCLE"
	}
	return fmt.Sprintf("CREATE SEQUENCE %s AS %s INCREMENT BY %d MINVALUE %d MAXVALUE %d CACHE %d%s", name, s.Type, s.Step, s.Min, s.Max, s.Keep, cycle)
}

// at returns where it is.
func (s sequence) at(ctx context.Context, tx pgx.Tx) (last int64, called bool, err error) {
	err = tx.QueryRow(ctx, "select last_value, is_called from "+s.Name).Scan(&last, &called)
	return last, called, err
}

// sequences returns the old ones from which defaults of tables draw that are in the schemas of shards.
func (j *job) sequences(ctx context.Context, q ledger.Querier, schemas []string) ([]sequence, error) {
	file, err := adopt.ParseFile("adopt.yaml", []byte(j.state.File))
	if err != nil {
		return nil, err
	}
	const query = `
		select distinct s.oid::regclass::text, s.relname::text, format_type(p.seqtypid, null), quote_ident(pg_get_userbyid(s.relowner)), p.seqincrement, p.seqmin, p.seqmax, p.seqcache, p.seqcycle,
			exists (select from pg_class u join pg_attribute k on k.attrelid = u.oid and k.attname = $4 where u.relname = $3 and u.relnamespace::regnamespace::text in (quote_ident($2), $5)
				and (exists (select from pg_depend o where o.classid = 'pg_class'::regclass and o.objid = s.oid and o.refobjid = u.oid and o.refobjsubid = k.attnum)
				or exists (select from pg_attrdef g join pg_depend o on o.classid = 'pg_attrdef'::regclass and o.objid = g.oid and o.refobjid = s.oid where g.adrelid = u.oid and g.adnum = k.attnum)))
		from pg_class t join pg_namespace n on n.oid = t.relnamespace join pg_attrdef f on f.adrelid = t.oid
		join pg_depend d on d.classid = 'pg_attrdef'::regclass and d.objid = f.oid and d.refclassid = 'pg_class'::regclass
		join pg_class s on s.oid = d.refobjid and s.relkind = 'S' join pg_sequence p on p.seqrelid = s.oid
		where n.nspname = any($1) and s.relnamespace <> t.relnamespace order by 1`
	rows, err := q.Query(ctx, query, schemas, file.Key.Table.Schema, file.Key.Table.Table, file.Key.Column, KeptIn)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[sequence])
}

// round is in how many parts the numbers of an old sequence are divided: for each shard, and for the old sequence itself.
func (j *job) round() int64 { return int64(j.cfg.Map.Len()) + 1 }

// interleave has each old sequence, but that of the key, skip the numbers that the sequences of shards will have: each of them, and the old one,
// has one number of a round. It locks the old ones until the transaction ends. One that has no room for a round stays as it is, and so does
// one that counts down or begins again: then numbers are unique in a shard only.
func (j *job) interleave(ctx context.Context, b budget) error {
	var schemas []string
	for n := range j.cfg.Map.All().All() {
		schemas = append(schemas, j.cfg.Map.Schema(n))
	}
	all, err := j.sequences(ctx, b.tx, schemas)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Key || s.Cycle || s.Step < 0 {
			continue
		}
		if err := b.run(ctx, fmt.Sprintf("alter sequence %s increment by %d", s.Name, s.Step)); err != nil { // a lock
			return err
		}
		last, called, err := s.at(ctx, b.tx)
		if err != nil {
			return err
		}
		if !called {
			last -= s.Step
		}
		if (s.Max-last)/s.Step >= j.round() {
			if err := b.run(ctx, fmt.Sprintf("alter sequence %s increment by %d restart with %d", s.Name, s.Step*j.round(), last+s.Step*j.round())); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownSequences returns the statements that give a shard sequences in the place of the old ones, and take the default of the key away: an ID that
// the key's sequence gives is in this shard by chance only.
func (j *job) ownSequences(ctx context.Context, tx pgx.Tx, n shards.Number) ([]string, error) {
	schema := j.cfg.Map.Schema(n)
	all, err := j.sequences(ctx, tx, []string{schema})
	if err != nil {
		return nil, err
	}
	var statements []string
	for _, s := range all {
		users, err := drawers(ctx, tx, schema, s)
		if err != nil {
			return nil, err
		}
		if s.Key {
			for _, u := range users {
				statements = append(statements, fmt.Sprintf("alter table %s alter column %s drop default", u.table(schema), quote(u.Column)))
			}
			continue
		}
		name := ownName(s, users)
		last, called, err := s.at(ctx, tx)
		if err != nil {
			return nil, err
		}
		if s.Step > 0 && s.Step%j.round() == 0 {
			last, called = last+s.Step/j.round()*(int64(n)+1), false
			if last > s.Max || last < s.Min { // its next number is an error
				last, called = s.Max, true
			}
		}
		sequence := quote(schema) + "." + quote(name)
		statements = append(statements, s.make(sequence), fmt.Sprintf("select setval(%s, %d, %t)", sqltext.Quote(sequence), last, called))
		for _, u := range users {
			expression := strings.ReplaceAll(u.Expression, asConstant(s.Name), asConstant(sequence))
			if expression == u.Expression {
				return nil, fmt.Errorf("default %s of column %s of %s draws from %s: expected a default without it", u.Expression, u.Column, u.table(schema), s.Name)
			}
			statements = append(statements, fmt.Sprintf("alter table %s alter column %s set default %s", u.table(schema), quote(u.Column), expression))
			for _, role := range u.Roles {
				statements = append(statements, fmt.Sprintf("grant usage on sequence %s to %s", sequence, role))
			}
		}
		first := users[0]
		if !first.Creates { // which Postgres wants of a new owner
			statements = append(statements, fmt.Sprintf("grant create on schema %s to %s", schema, first.Owner))
		}
		if statements = append(statements, fmt.Sprintf("alter sequence %s owner to %s", sequence, first.Owner)); len(users) == 1 {
			statements = append(statements, fmt.Sprintf("alter sequence %s owned by %s.%s", sequence, first.table(schema), quote(first.Column)))
		}
		if !first.Creates {
			statements = append(statements, fmt.Sprintf("revoke create on schema %s from %s", schema, first.Owner))
		}
	}
	return statements, nil
}

// asConstant returns the name of a sequence as Postgres writes it in expressions.
func asConstant(name string) string {
	return "'" + strings.ReplaceAll(name, "'", "''") + "'::regclass"
}

// ownName returns the name of a shard's sequence: the one that Postgres would give it, or that of the old one if several columns draw from it.
func ownName(s sequence, users []drawer) string {
	if own := users[0].Table + "_" + users[0].Column + "_seq"; len(users) == 1 && len(own) < 64 {
		return own
	}
	return s.Plain
}

// drawer is a column of a shard whose default draws from a sequence.
type drawer struct {
	Table, Column string
	Expression    string // of the default
	Owner         string // of the table, as SQL
	Creates       bool   // the owner may create in the schema
	Roles         []string
}

func (d drawer) table(schema string) string { return quote(schema) + "." + quote(d.Table) }

func drawers(ctx context.Context, tx pgx.Tx, schema string, s sequence) ([]drawer, error) {
	const query = `
		select t.relname::text, a.attname::text, pg_get_expr(f.adbin, f.adrelid), quote_ident(pg_get_userbyid(t.relowner)), has_schema_privilege(t.relowner, t.relnamespace, 'create'),
			array(select distinct case g.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end from aclexplode(t.relacl) g where g.privilege_type = 'INSERT' and g.grantee <> 'kiloshard_adopt'::regrole)
		from pg_class t join pg_attrdef f on f.adrelid = t.oid join pg_attribute a on a.attrelid = t.oid and a.attnum = f.adnum
		where t.relnamespace = $1::text::regnamespace and exists (select from pg_depend d where d.classid = 'pg_attrdef'::regclass and d.objid = f.oid and d.refobjid = $2::text::regclass)
		order by 1, 2`
	rows, err := tx.Query(ctx, query, quote(schema), s.Name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[drawer])
}

// spareKeys is how many numbers of an identity column's sequence are left to sessions that have found it before another took its place.
const spareKeys = 100_000

// keepKey returns the statements before and after which an old table goes to another schema, so that a sequence of the key stays in its own. That
// of an identity column cannot leave its table: another one takes its place, and begins beyond all that the first can still give.
func (j *job) keepKey(ctx context.Context, b budget, t *structure.Table) (before, after []string, err error) {
	file, err := adopt.ParseFile("adopt.yaml", []byte(j.state.File))
	if err != nil || t.Name != file.Key.Table {
		return nil, nil, err
	}
	const query = `
		select s.oid::regclass::text, s.relname::text, format_type(p.seqtypid, null), quote_ident(pg_get_userbyid(s.relowner)), p.seqincrement, p.seqmin, p.seqmax, p.seqcache, p.seqcycle, d.deptype = 'i',
			array(select format('grant %s on sequence %s to %s', g.privilege_type, s.oid::regclass, case g.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end) from aclexplode(s.relacl) g)
		from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S' join pg_sequence p on p.seqrelid = s.oid join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
		where d.classid = 'pg_class'::regclass and d.refobjid = $1::text::regclass and a.attname = $2 and d.deptype in ('a', 'i')`
	rows, err := b.tx.Query(ctx, query, t.Name.SQL(), file.Key.Column)
	if err != nil {
		return nil, nil, err
	}
	var s sequence
	var grants []string
	var identity bool
	if _, err = pgx.ForEachRow(rows, []any{&s.Name, &s.Plain, &s.Type, &s.Owner, &s.Step, &s.Min, &s.Max, &s.Keep, &s.Cycle, &identity, &grants}, func() error { return nil }); err != nil || s.Name == "" {
		return nil, nil, err
	}
	if !identity {
		return []string{fmt.Sprintf("alter sequence %s owned by none", s.Name)}, nil, nil
	}
	if err := b.run(ctx, fmt.Sprintf("alter sequence %s increment by %d", s.Name, s.Step)); err != nil { // a lock
		return nil, nil, err
	}
	last, called, err := s.at(ctx, b.tx)
	if err != nil {
		return nil, nil, err
	}
	if s.Step > 0 && !s.Cycle {
		last, called = last+min(spareKeys, (s.Max-last)/s.Step/2)*s.Step, true
		before = append(before, fmt.Sprintf("alter sequence %s maxvalue %d", s.Name, last))
	}
	after = append(after, s.make(s.Name), fmt.Sprintf("select setval(%s, %d, %t)", sqltext.Quote(s.Name), last, called))
	return before, append(append(after, grants...), fmt.Sprintf("alter sequence %s owner to %s", s.Name, s.Owner)), nil
}
