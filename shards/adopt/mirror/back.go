package mirror

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// New returns the function of the trigger of the tables that shards have in an old one's place. The name of their schema ends with
// the shard's number. Like that of [Writer.Old] it copies what the table has now. What the old table's foreign keys would do to other rows it does itself before,
// as the role kiloshard_adopt: so no trigger of the user fires for that.
func (w Writer) New(t *structure.Table) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	old := t.Name.SQL()
	keyChanged := fmt.Sprintf("not (%s)", t.Equal(t.Key, "NEW.", t.Key, "OLD."))
	current := fmt.Sprintf("format(%s, tg_table_schema, tg_table_name)",
		text(strings.ReplaceAll(fmt.Sprintf("select %s from ", structure.Columns(t.All(), "t.")), "%", "%%")+"%I.%I"+strings.ReplaceAll(fmt.Sprintf(" t where %s", t.Equal(t.Key, "t.", t.Key, "($1).")), "%", "%%")))
	line("create or replace function %s() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $kiloshard$", functionNew(t))
	line("#variable_conflict use_variable")
	line("declare now_row %s; old_row %[1]s; there boolean; had boolean; row_count int; shard constant int := right(tg_table_schema, 5);", old)
	line("begin")
	line("if tg_op <> 'DELETE' and %s then", w.elsewhere(t))
	line("  raise exception using errcode = '%s', message = 'a row of table ' || %s || ' is not of shard ' || shard; end if;", refusedKey, sqltext.Quote(t.Name.String()))
	line("if tg_op = 'DELETE' then execute %s into now_row using OLD; else execute %[1]s into now_row using NEW; end if;", current)
	line("get diagnostics row_count = row_count;")
	line("there := row_count > 0;")
	line("if tg_op <> 'INSERT' then select t.* into old_row from %s t where %s; end if;", old, t.Equal(t.Key, "t.", t.Key, "OLD."))
	line("had := tg_op <> 'INSERT' and found;")
	line("if tg_op = 'INSERT' or tg_op = 'UPDATE' and not had then -- a row of another shard is a duplicate")
	line("  select t.* into old_row from %s t where %s and %s = shard;", old, t.Equal(t.Key, "t.", t.Key, "NEW."), w.shardOf(t, "t"))
	line("  had := found;")
	line("end if;")
	line("if not there then")
	line("  if tg_op = 'DELETE' and had then perform %s(old_row);", functionDelete(t))
	line("  elsif tg_op = 'UPDATE' and %s then", keyChanged)
	line("    raise exception using errcode = '0A000', message = 'a row of table ' || %s || ' has more than two keys in one statement'; end if;", sqltext.Quote(t.Name.String()))
	line("  return null;")
	line("end if;")
	var set, always []string
	for _, c := range t.Columns {
		switch {
		case c.Always:
			always = append(always, fmt.Sprintf("now_row.%s is distinct from old_row.%[1]s", quote(c.Name)))
		case !c.Generated:
			set = append(set, fmt.Sprintf("%s = now_row.%[1]s", quote(c.Name)))
		}
	}
	line("if had then")
	if len(always) > 0 {
		line("  if %s then raise exception using errcode = '428C9', message = 'a column of table ' || %s || ' that is GENERATED ALWAYS AS IDENTITY can only be updated to DEFAULT'; end if;",
			strings.Join(always, " or "), sqltext.Quote(t.Name.String()))
	}
	w.rename(t, line)
	if len(set) > 0 {
		line("  update %s t set %s where %s;", old, strings.Join(set, ", "), t.Equal(t.Key, "t.", t.Key, "old_row."))
	}
	line("else insert into %s (%s) overriding system value values (%s); end if;", old, structure.Columns(t.Written(), ""), structure.Columns(t.Written(), "now_row."))
	line("return null;")
	line("end $kiloshard$")
	return b.String()
}

// rename does what foreign keys do ON UPDATE to rows that refer to the row. Like Postgres it compares bytes: another spelling of the same key,
// such as one of citext, is passed on.
func (w Writer) rename(t *structure.Table, line func(string, ...any)) {
	for _, l := range w.referring(t) {
		var to []string
		for i, name := range l.Columns {
			switch l.OnUpdate {
			case "c":
				to = append(to, quote(name)+" = now_row."+quote(l.References[i]))
			case "n":
				to = append(to, quote(name)+" = null")
			case "d":
				to = append(to, quote(name)+" = default")
			}
		}
		if len(to) > 0 {
			line("  if row(%s)::record *<> row(%s)::record then update %s c set %s where %s; end if;", structure.Columns(l.References, "now_row."), structure.Columns(l.References, "old_row."),
				l.From.SQL(), strings.Join(to, ", "), t.Equal(l.References, "old_row.", l.Columns, "c."))
		}
	}
}

// Delete returns the function that deletes a row of an old table, and before that does what foreign keys do ON DELETE to rows that refer to it.
func (w Writer) Delete(t *structure.Table) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("create or replace function %s(old_row %s) returns void language plpgsql set search_path = pg_catalog, pg_temp as $kiloshard$", functionDelete(t), t.Name.SQL())
	var declared, body []string
	for i, l := range w.referring(t) {
		refer := t.Equal(l.References, "old_row.", l.Columns, "c.")
		switch l.OnDelete {
		case "c":
			child := w.Set.Table(l.From)
			declared = append(declared, fmt.Sprintf("row_%d %s;", i, l.From.SQL()))
			if child == t {
				refer += fmt.Sprintf(" and not (%s)", t.Equal(t.Key, "c.", t.Key, "old_row."))
			}
			body = append(body, fmt.Sprintf("for row_%d in select c.* from %s c where %s loop perform %s(row_%[1]d); end loop;", i, l.From.SQL(), refer, functionDelete(child)))
		case "n", "d":
			value := map[string]string{"n": "null", "d": "default"}[l.OnDelete]
			var to []string
			for _, name := range l.Columns {
				to = append(to, quote(name)+" = "+value)
			}
			body = append(body, fmt.Sprintf("update %s c set %s where %s;", l.From.SQL(), strings.Join(to, ", "), refer))
		}
	}
	line("declare %s begin", strings.Join(declared, " "))
	line("%s", strings.Join(body, "\n"))
	line("delete from %s t where %s;", t.Name.SQL(), t.Equal(t.Key, "t.", t.Key, "old_row."))
	line("end $kiloshard$")
	return b.String()
}

// referring returns the foreign keys that refer to a table, but those that cross: old tables have these no more.
func (w Writer) referring(t *structure.Table) []structure.Link {
	var found []structure.Link
	for _, child := range w.Set.Tables {
		for _, l := range child.Links {
			if l.To == t.Name && !l.Crosses {
				found = append(found, l)
			}
		}
	}
	return found
}

// text returns a constant of SQL.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// elsewhere is true for NEW if it is not of the shard. A row of a chain is in the shard of its parent, which is in the same schema.
func (w Writer) elsewhere(t *structure.Table) string {
	if len(t.Route.Links) == 0 {
		return fmt.Sprintf("%s::int is distinct from shard", w.Shard("NEW."+quote(t.Route.Column)))
	}
	var parts []string
	for _, c := range t.Route.Links[0].Columns {
		parts = append(parts, "NEW."+quote(c)+" is null")
	}
	return "(" + strings.Join(parts, " or ") + ")"
}

// Defer returns the function that defers the foreign keys of an old table in transactions that write to a shard's table in its place.
func (w Writer) Defer(t *structure.Table) string {
	var names []string
	for _, table := range w.Set.Tables {
		for _, l := range table.Links {
			name := quote(l.From.Schema) + "." + quote(l.Name)
			if !l.Crosses && (l.From == t.Name || l.To == t.Name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	do := ""
	if len(names) > 0 {
		do = "set constraints " + strings.Join(names, ", ") + " deferred; "
	}
	return fmt.Sprintf("create or replace function %s() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $kiloshard$ begin %sreturn null; end $kiloshard$",
		functionDefer(t), do)
}

// OnNew returns the statements that make the triggers of a table of a shard.
func (w Writer) OnNew(t *structure.Table, schema string) []string {
	name := t.At(schema).SQL()
	return []string{
		fmt.Sprintf("create trigger %s before insert or update or delete on %s for each statement execute function %s()", triggerDefer, name, functionDefer(t)),
		fmt.Sprintf("create trigger %s after insert or update or delete on %s for each row execute function %s()", triggerNew, name, functionNew(t)),
		fmt.Sprintf("create trigger %s before truncate on %s for each statement execute function kiloshard_adopt.refuse_truncate()", triggerTruncate, name),
		always(name, triggerDefer), always(name, triggerNew), always(name, triggerTruncate),
		fmt.Sprintf("create trigger %s after update of %s on %s for each statement execute function %s()", triggerColumns, structure.Columns(t.All(), ""), name, functionDefer(t)),
		fmt.Sprintf("alter table %s disable trigger %s", name, triggerColumns),
	}
}

// OffNew returns the statements that drop these triggers.
func (w Writer) OffNew(t *structure.Table, schema string) []string {
	name := t.At(schema).SQL()
	return []string{
		fmt.Sprintf("drop trigger if exists %s on %s", triggerDefer, name), fmt.Sprintf("drop trigger if exists %s on %s", triggerNew, name),
		fmt.Sprintf("drop trigger if exists %s on %s", triggerTruncate, name), fmt.Sprintf("drop trigger if exists %s on %s", triggerColumns, name),
	}
}
