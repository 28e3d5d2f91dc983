package views

import (
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
)

// copied returns the view of a table that COPY can write to. Its trigger inserts into a hidden view, so the check of the shard is the same rule
// of Postgres as without a trigger. A view with such a trigger does not use the defaults of the old table, so it gets them itself.
func (k *maker) copied(n shards.Number, o *oldTable, hidden view, function string) view {
	schema := k.m.Schema(n)
	v := k.view(n, o, o.Table.Table)
	var names, values, all, generated []string
	identity := ""
	for _, c := range o.columns {
		name := quote(c.Name)
		all = append(all, name)
		switch {
		case c.Generated:
			generated = append(generated, fmt.Sprintf("if new.%s is not null then\n\t\traise exception 'cannot insert a non-DEFAULT value into column %%', %s using errcode = 'generated_always';\n\tend if;", name, literal(name)))
			continue
		case c.Identity && c.Name != o.ID || c.Identity && len(hidden.defaults) == 0:
			identity = name
		case c.Default != "" && !(c.Name == o.ID && len(v.defaults) > 0):
			v.defaults = append(v.defaults, fmt.Sprintf("alter column %s set default %s", name, c.Default))
		}
		if name != identity {
			names, values = append(names, name), append(values, "new."+name)
		}
	}
	returned := make([]string, len(all))
	for i, name := range all {
		returned[i] = "new." + name
	}
	insert := func(names, values []string, overriding string) string {
		source := "default values"
		if len(names) > 0 {
			source = fmt.Sprintf("(%s)%s values (%s)", strings.Join(names, ", "), overriding, strings.Join(values, ", "))
		}
		return fmt.Sprintf("insert into %s %s returning %s into %s;", hidden.name, source, strings.Join(all, ", "), strings.Join(returned, ", "))
	}
	body := insert(names, values, "")
	if identity != "" { // a value that COPY has, or else the next one
		body = fmt.Sprintf("if new.%s is null then\n\t\t%s\n\telse\n\t\t%s\n\tend if;", identity, body,
			insert(append(names, identity), append(values, "new."+identity), " overriding system value"))
	}
	name := quote(schema, function)
	text := fmt.Sprintf("#variable_conflict use_column\nbegin\n\t%s\n\treturn new;\nend", strings.Join(append(generated, body), "\n\t"))
	v.after = []string{
		fmt.Sprintf("create or replace function %s() returns trigger language plpgsql as %s", name, literal(text)),
		fmt.Sprintf("comment on function %s() is %s", name, literal(ledger.Mark)),
		fmt.Sprintf("revoke all on function %s() from public", name),
		fmt.Sprintf("create trigger kiloshard_insert instead of insert on %s for each row execute function %s()", v.name, name),
	}
	return v
}

// literal returns a text as a constant of SQL. Sessions of package ledger have standard_conforming_strings.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
