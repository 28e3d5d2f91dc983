package structure

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// notMirror is true unless the statement was made by a mirror.
const notMirror = `(current_user operator(pg_catalog.<>) 'kiloshard_adopt'::pg_catalog.name)`

// moved returns a definition with another table after a key word: ON of an index or a trigger, REFERENCES of a foreign key. Postgres has
// written the definition, in which a key word has no quotes and a name that looks like one does.
func moved(definition, after string, to tables.Name) (string, error) {
	start, end := -1, -1
	found, named := false, false
	for t := range sqltext.Tokens(definition) {
		switch {
		case !found:
			found = t.Is(after)
		case t.Is("only"):
		case start < 0:
			start, end, named = t.Start, t.End(), true
		case named && t.Is("."):
			named = false
		case !named:
			end, named = t.End(), true
		default:
			return definition[:start] + to.SQL() + definition[end:], nil
		}
	}
	if start < 0 {
		return "", fmt.Errorf("%s: expected a table after %s", definition, strings.ToUpper(after))
	}
	return definition[:start] + to.SQL() + definition[end:], nil
}

// NotByMirror returns the definition of a trigger that does not fire for what a mirror writes.
func NotByMirror(definition string) (string, error) {
	depth, when, inner, closed := 0, -1, -1, -1
	for t := range sqltext.Tokens(definition) {
		switch {
		case t.Is("("):
			if depth == 0 && when >= 0 && inner < 0 {
				inner = t.End()
			}
			depth++
		case t.Is(")"):
			depth--
			if depth == 0 && inner >= 0 && closed < 0 {
				closed = t.Start
			}
		case depth == 0 && when < 0 && t.Is("when"):
			when = t.Start
		case depth == 0 && t.Is("execute"):
			if when < 0 {
				return definition[:t.Start] + "WHEN " + notMirror + " " + definition[t.Start:], nil
			}
			if inner < 0 || closed < 0 {
				return "", fmt.Errorf("%s: expected a condition in parentheses after WHEN", definition)
			}
			return definition[:inner] + notMirror + " AND (" + definition[inner:closed] + ")" + definition[closed:], nil
		}
	}
	return "", fmt.Errorf("%s: expected EXECUTE", definition)
}

// quote returns a name for a statement.
func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// Columns returns names as a list for a statement, each after a prefix.
func Columns(names []string, prefix string) string {
	var all []string
	for _, name := range names {
		all = append(all, prefix+quote(name))
	}
	return strings.Join(all, ", ")
}

// At returns the table of the same name in another schema.
func (t *Table) At(schema string) tables.Name {
	return tables.Name{Schema: schema, Table: t.Name.Table}
}
