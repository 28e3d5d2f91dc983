package mirror

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// Writer writes the functions for the tables of an adoption.
type Writer struct {
	Set    *structure.Set
	Shard  func(key string) string // the expression for the shard of a key
	OldWay string                  // the condition for a session without a shard's path
}

// Old returns the function of the trigger of an old table. It does not trust OLD and NEW to be the last versions of the row: a foreign key's
// action fires triggers late, after other statements have changed the row again. So it copies what the old table has now.
func (w Writer) Old(t *structure.Table) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	keyChanged := fmt.Sprintf("not (%s)", t.Equal(t.Key, "NEW.", t.Key, "OLD."))
	line("create or replace function %s() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $kiloshard$", functionOld(t))
	line("#variable_conflict use_variable")
	line("declare old_shard int; new_shard int; lost boolean; at text; hidden text; there boolean := false; unseen boolean; now_shard int; rows_of text := 'a row of table ' || %s;", sqltext.Quote(t.Name.String()))
	line("begin")
	line("if tg_op <> 'INSERT' then old_shard := %s; end if;", w.shardOf(t, "OLD"))
	line("if tg_op <> 'DELETE' then")
	line("  select %s, %s into new_shard, lost from %s t where %s;", w.shardOf(t, "t"), w.needsKey(t, "t"), t.Name.SQL(), t.Equal(t.Key, "t.", t.Key, "NEW."))
	line("  there := found;")
	line("  if there and new_shard is null and lost then")
	line("    raise exception using errcode = '%s', message = rows_of || ' reaches no key, so it has no shard'; end if;", refusedKey)
	line("end if;")
	line("if tg_op = 'UPDATE' and there then")
	if len(t.Route.Links) > 0 { // ON UPDATE CASCADE has given the parent another name
		line("  if old_shard is null and %s then old_shard := coalesce(new_shard, -1); end if;", w.dangles(t, "OLD"))
	}
	line("  if old_shard is distinct from new_shard then")
	line("    raise exception using errcode = '%s', message = rows_of || ' would leave its shard, ' || coalesce(old_shard::text, 'none') || ', for ' || coalesce('shard ' || new_shard, 'none'),", refusedKey)
	line("      hint = 'Insert it in the other shard, and delete it here.'; end if;")
	line("end if;")
	w.orphans(t, line)
	line("new_shard := coalesce(new_shard, old_shard);")
	line("if new_shard is null then return null; end if;")
	line("select s.stage into at from kiloshard_adopt.shards s where s.shard = new_shard;")
	line("if at = 'views' then return null; end if;")
	line("if at is distinct from 'copying' then")
	line("  if tg_op = 'UPDATE' and OLD *= NEW then return null; end if; -- a mirror has spelled the key of the parent in another way, and a foreign key passes that on")
	line("  perform from kiloshard_adopt.shards s where s.shard = new_shard for share; -- an old snapshot may be wrong about the stage (40001)")
	line("  raise exception using errcode = '%s', message = rows_of || ' is in shard ' || new_shard || ', which has tables of its own',", RefusedShard)
	line("    hint = 'Write it by the path of its shard, with no schema before the table: kiloshard help adopt.'; end if;")
	line("hidden := 'kiloshard_adopt_' || new_shard;")
	line("if tg_op = 'DELETE' or tg_op = 'UPDATE' and %s then", keyChanged)
	line("  unseen := current_setting('transaction_isolation') in ('repeatable read', 'serializable');")
	line("  if unseen then execute %s using OLD; end if;", in(insertUnseen(t, "($1).")))
	if len(w.cascades(t)) > 0 {
		line("  if tg_op = 'DELETE' then perform %s(OLD, hidden, unseen); end if;", functionCascade(t))
	}
	line("  select %s into now_shard from %s t where %s;", w.shardOf(t, "t"), t.Name.SQL(), t.Equal(t.Key, "t.", t.Key, "OLD."))
	line("  if found and now_shard = new_shard then execute %s using OLD; else execute %s using OLD; end if;", in(w.upsert(t)), in(deleteOf(t, "($1).")))
	line("end if;")
	line("if tg_op <> 'DELETE' and there then execute %s using NEW; end if;", in(w.upsert(t)))
	line("return null;")
	line("end $kiloshard$")
	return b.String()
}

// upsert copies the row of the old table that has the key of $1.
func (w Writer) upsert(t *structure.Table) string {
	columns := t.Written()
	return fmt.Sprintf("insert into %s (%s) select %s from %s t where %s%s", hiddenTable(t), structure.Columns(columns, ""), structure.Columns(columns, "t."), t.Name.SQL(),
		t.Equal(t.Key, "t.", t.Key, "($1)."), onConflict(t))
}

// deleteOf deletes the copy of a row.
func deleteOf(t *structure.Table, row string) string {
	return fmt.Sprintf("delete from %s h where %s", hiddenTable(t), t.Equal(t.Key, "h.", t.Key, row))
}

// insertUnseen fails if the row has a copy that the transaction cannot see.
func insertUnseen(t *structure.Table, row string) string {
	return fmt.Sprintf("insert into %s (%s) values (%s) on conflict do nothing", hiddenTable(t), structure.Columns(t.Written(), ""), structure.Columns(t.Written(), row))
}

// shardOf is the expression for the shard of a row, null if it reaches no key.
func (w Writer) shardOf(t *structure.Table, row string) string {
	return t.Route.Value(row, func(key string) string { return w.Shard(key) + "::int" })
}

// needsKey is true for a row without a shard that has to have one.
func (w Writer) needsKey(t *structure.Table, row string) string {
	if t.Keyless {
		return w.dangles(t, row)
	}
	return "true"
}

// dangles is true for a row whose first link leads to no row.
func (w Writer) dangles(t *structure.Table, row string) string {
	if len(t.Route.Links) == 0 {
		return "false"
	}
	link := t.Route.Links[0]
	var parts []string
	for _, c := range link.Columns {
		parts = append(parts, row+"."+quote(c)+" is not null")
	}
	return fmt.Sprintf("(%s and not exists (select from %s p where %s))", strings.Join(parts, " and "), link.To.SQL(), w.Set.Table(link.To).Equal(link.References, "p.", link.Columns, row+"."))
}

// orphans refuses to delete or rename a parent of a chain while children refer to it.
func (w Writer) orphans(t *structure.Table, line func(string, ...any)) {
	for _, l := range w.children(t) {
		var ops []string
		if l.OnDelete == "a" {
			ops = append(ops, "tg_op = 'DELETE'")
		}
		if l.OnUpdate == "a" {
			ops = append(ops, fmt.Sprintf("tg_op = 'UPDATE' and (%s) is not true", t.Equal(l.References, "NEW.", l.References, "OLD.")))
		}
		if len(ops) == 0 {
			continue
		}
		line("if (%s) and exists (select from %s c where %s) then", strings.Join(ops, " or "), l.From.SQL(), t.Equal(l.References, "OLD.", l.Columns, "c."))
		line("  raise exception using errcode = '23503', message = %s;", sqltext.Quote(fmt.Sprintf(`update or delete on table "%s" violates foreign key constraint "%s" on table "%s"`, t.Name.Table, l.Name, l.From.Table)))
		line("end if;")
	}
}

// Cascade returns the function that deletes the copies of the rows that a cascade along chains is about to delete with a row of an old table.
// It locks these rows before: when the copy has locked them, it has inserted them too once the lock is free. Last it deletes the copies of
// children that the old table has no more: the statement has deleted them together with their parent, and then they reach no shard.
// It goes row by row, so that no plan depends on the size of a table.
func (w Writer) Cascade(t *structure.Table) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("create or replace function %s(gone %s, hidden text, unseen boolean) returns void language plpgsql set search_path = pg_catalog, pg_temp as $kiloshard$",
		functionCascade(t), t.Name.SQL())
	links := w.cascades(t)
	var declared []string
	for i, l := range links {
		declared = append(declared, fmt.Sprintf("row_%d %s;", i, l.From.SQL()))
	}
	line("declare %s", strings.Join(declared, " "))
	line("begin")
	for i, l := range links {
		child := w.Set.Table(l.From)
		further := ""
		if len(w.cascades(child)) > 0 {
			further = fmt.Sprintf(" perform %s(row_%d, hidden, unseen);", functionCascade(child), i)
		}
		line("for row_%d in select c.* from %s c where %s for update loop", i, l.From.SQL(), t.Equal(l.References, "gone.", l.Columns, "c."))
		line("  if unseen then execute %s using row_%d; end if;", in(insertUnseen(child, "($1).")), i)
		line("  execute %s using row_%d;%s", in(deleteOf(child, "($1).")), i, further)
		line("end loop;")
		// A row that has another parent by now stays.
		rest := fmt.Sprintf("delete from %s h where %s and not exists (select from %s t where %s)", hiddenTable(child), t.Equal(l.References, "($1).", l.Columns, "h."),
			l.From.SQL(), child.Equal(child.Key, "t.", child.Key, "h."))
		if further == "" {
			line("execute %s using gone;", in(rest))
			continue
		}
		line("for row_%d in execute %s using gone loop%s end loop;", i, in(rest+" returning "+structure.Columns(child.All(), "h.")), further)
	}
	line("end $kiloshard$")
	return b.String()
}

// cascades returns the links of chains by which a delete in a table cascades.
func (w Writer) cascades(t *structure.Table) []structure.Link {
	return slices.DeleteFunc(w.children(t), func(l structure.Link) bool { return l.OnDelete != "c" })
}

// children returns the links of chains that lead to a table.
func (w Writer) children(t *structure.Table) []structure.Link {
	var found []structure.Link
	for _, child := range w.Set.Tables {
		for _, l := range child.Links {
			if l.To == t.Name && w.Set.Chain(l) {
				found = append(found, l)
			}
		}
	}
	return found
}

// hiddenMark is where a statement has the hidden schema. No name has it.
const hiddenMark = "\x00"

// hiddenTable is a hidden table in a statement for [in].
func hiddenTable(t *structure.Table) string { return hiddenMark + "." + quote(t.Name.Table) }

// in returns an expression for the text of a statement, with a mark in the place of the hidden schema.
func in(statement string) string {
	var parts []string
	for _, part := range strings.Split(statement, hiddenMark) {
		parts = append(parts, text(part))
	}
	return strings.Join(parts, " || hidden || ")
}

// onConflict updates the row of the same key, which may be spelled in another way.
func onConflict(t *structure.Table) string {
	var set []string
	for _, name := range t.Written() {
		set = append(set, fmt.Sprintf("%s = excluded.%[1]s", quote(name)))
	}
	return fmt.Sprintf(" on conflict (%s) do update set %s", structure.Columns(t.Key, ""), strings.Join(set, ", "))
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
