package mirror

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// refuse are functions of triggers that all tables share.
const refuse = `
create or replace function kiloshard_adopt.refuse_old_way() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $kiloshard$ begin
raise exception using errcode = '` + RefusedOldWay + `', message = format('table %I.%I is in shards: a session without the path of a shard cannot write it', tg_table_schema, tg_table_name),
	hint = 'Send the statement through the router, or set search_path to the schema of a shard: kiloshard help adopt.';
end $kiloshard$;
create or replace function kiloshard_adopt.refuse_truncate() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $kiloshard$ begin
raise exception using errcode = '` + RefusedOldWay + `', message = format('table %I.%I is in two places until kiloshard adopt finish: it cannot be truncated', tg_table_schema, tg_table_name),
	hint = 'Delete its rows.';
end $kiloshard$`

// Functions returns the functions with their arguments, and the statements that make them.
func (w Writer) Functions() (names, statements []string) {
	names, statements = []string{"kiloshard_adopt.refuse_old_way()", "kiloshard_adopt.refuse_truncate()"}, []string{refuse}
	for _, t := range w.Set.Tables {
		names = append(names, functionOld(t)+"()", functionNew(t)+"()", functionDefer(t)+"()", functionDelete(t)+"("+t.Name.SQL()+")", functionCascade(t)+"("+t.Name.SQL()+", text, boolean)")
		statements = append(statements, w.Old(t), w.New(t), w.Defer(t), w.Delete(t), w.Cascade(t))
	}
	return names, statements
}

// OnOld returns the statements that make the triggers of an old table.
func (w Writer) OnOld(t *structure.Table) []string {
	name := t.Name.SQL()
	return append(w.OffOld(t),
		fmt.Sprintf("create trigger %s after insert or update or delete on %s for each row when %s execute function %s()", triggerOld, name, notMirror, functionOld(t)),
		// A cascade is the work of the statement that began it, and runs with the search_path of a mirror.
		fmt.Sprintf("create trigger %s before insert or update or delete on %s for each statement when (%s and pg_catalog.pg_trigger_depth() operator(pg_catalog.=) 0 and %s) execute function kiloshard_adopt.refuse_old_way()",
			triggerClosed, name, notMirror, w.OldWay),
		fmt.Sprintf("create trigger %s before truncate on %s for each statement execute function kiloshard_adopt.refuse_truncate()", triggerTruncate, name),
		always(name, triggerOld), always(name, triggerClosed), always(name, triggerTruncate),
		// It records writes that are refused now, and would take a mirror for such a one.
		fmt.Sprintf("alter table %s disable trigger %s", name, triggerRecord),
	)
}

// always has a trigger fire in sessions that act as replicas, too.
func always(table, trigger string) string {
	return fmt.Sprintf("alter table %s enable always trigger %s", table, trigger)
}

// Reopen returns the statements that give an old table the trigger of gate 1 again.
func (w Writer) Reopen(t *structure.Table) []string {
	return append(w.OffOld(t), always(t.Name.SQL(), triggerRecord))
}

// OffOld returns the statements that drop these triggers.
func (w Writer) OffOld(t *structure.Table) []string {
	name := t.Name.SQL()
	return []string{
		fmt.Sprintf("drop trigger if exists %s on %s", triggerOld, name), fmt.Sprintf("drop trigger if exists %s on %s", triggerClosed, name),
		fmt.Sprintf("drop trigger if exists %s on %s", triggerTruncate, name),
	}
}
