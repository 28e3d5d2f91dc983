package structure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// Make returns the statements that make the table in a schema, without foreign keys and triggers. defaults are the expressions of
// defaults that columns have in place of the old ones. The role kiloshard_adopt may write it.
func (t *Table) Make(schema string, defaults map[string]string) ([]string, error) {
	name := t.At(schema).SQL()
	all := []string{fmt.Sprintf("create table %s (like %s including all excluding indexes excluding constraints excluding identity)", name, t.Name.SQL())}
	for _, c := range t.Columns {
		expression := defaults[c.Name]
		if expression == "" && c.Identity {
			expression = fmt.Sprintf("pg_catalog.nextval(%s::pg_catalog.regclass)", sqltext.Quote(c.Sequence))
		}
		if expression != "" {
			all = append(all, fmt.Sprintf("alter table %s alter column %s set default %s", name, quote(c.Name), expression))
		}
	}
	for _, k := range t.Constraints {
		all = append(all, fmt.Sprintf("alter table %s add constraint %s %s", name, quote(k.Name), k.Definition))
		if k.Comment != "" {
			all = append(all, fmt.Sprintf("comment on constraint %s on %s is %s", quote(k.Name), name, sqltext.Quote(k.Comment)))
		}
	}
	for _, x := range t.Indexes {
		definition, err := moved(x.Definition, "on", t.At(schema))
		if err != nil {
			return nil, err
		}
		if all = append(all, definition); x.Comment != "" {
			all = append(all, fmt.Sprintf("comment on index %s.%s is %s", quote(schema), quote(x.Name), sqltext.Quote(x.Comment)))
		}
	}
	if t.comment != "" {
		all = append(all, fmt.Sprintf("comment on table %s is %s", name, sqltext.Quote(t.comment)))
	}
	if len(t.options) > 0 {
		all = append(all, fmt.Sprintf("alter table %s set (%s)", name, strings.Join(t.options, ", ")))
	}
	if t.identity == "f" || t.identity == "n" {
		all = append(all, fmt.Sprintf("alter table %s replica identity %s", name, map[string]string{"f": "full", "n": "nothing"}[t.identity]))
	}
	return append(all, t.grants(name)...), nil
}

// grants returns the statements that give a table the rights and the owner of the old one.
func (t *Table) grants(name string) []string {
	all := []string{"grant select, insert, update, delete on " + name + " to kiloshard_adopt"}
	for _, g := range t.rights {
		all = append(all, g.On(name))
	}
	return append(all, fmt.Sprintf("alter table %s owner to %s", name, quote(t.Owner)))
}

// MakeTriggers returns the statements that make the user's triggers of the table in a schema.
func (t *Table) MakeTriggers(schema string) ([]string, error) {
	var all []string
	for _, trigger := range t.Triggers {
		definition, err := moved(trigger.Definition, "on", t.At(schema))
		if err != nil {
			return nil, err
		}
		all = append(all, trigger.Statements(definition, t.At(schema).SQL())...)
	}
	return all, nil
}

// Statements returns those that make a trigger on a table.
func (o Object) Statements(definition, table string) []string {
	all := []string{definition}
	if how, ok := map[string]string{"D": "disable", "R": "enable replica", "A": "enable always"}[o.Enabled]; ok {
		all = append(all, fmt.Sprintf("alter table %s %s trigger %s", table, how, quote(o.Name)))
	}
	if o.Comment != "" {
		all = append(all, fmt.Sprintf("comment on trigger %s on %s is %s", quote(o.Name), table, sqltext.Quote(o.Comment)))
	}
	return all
}

// MakeLinks returns the statements that make the foreign keys of the table in a schema without a look at its rows.
func (t *Table) MakeLinks(schema string) ([]string, error) {
	var all []string
	for _, l := range t.kept() {
		to := l.To
		to.Schema = schema
		definition, err := moved(NotValid(l.Definition), "references", to)
		if err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprintf("alter table %s add constraint %s %s", t.At(schema).SQL(), quote(l.Name), definition))
		if l.Comment != "" {
			all = append(all, fmt.Sprintf("comment on constraint %s on %s is %s", quote(l.Name), t.At(schema).SQL(), sqltext.Quote(l.Comment)))
		}
	}
	return all, nil
}

// NotValid returns the definition of a foreign key that is made without a look at the rows.
func NotValid(definition string) string {
	return strings.TrimSuffix(definition, " NOT VALID") + " NOT VALID"
}

// Validate returns the statements that check the rows of the table in a schema by its foreign keys, if those of the old table were valid.
func (t *Table) Validate(schema string) []string {
	var all []string
	for _, l := range t.kept() {
		if l.Valid {
			all = append(all, fmt.Sprintf("alter table %s validate constraint %s", t.At(schema).SQL(), quote(l.Name)))
		}
	}
	return all
}

// kept returns the foreign keys that shards have.
func (t *Table) kept() []Link {
	return slices.DeleteFunc(slices.Clone(t.Links), func(l Link) bool { return l.Crosses })
}
