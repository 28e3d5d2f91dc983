package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// Functions are functions of one schema.
type Functions map[functionKey]function

type functionKey struct {
	name string
	args int // how many parameters it has
}

type function struct {
	definition string // in the form of [sql.Definition]
	body       string
	public     bool   // PUBLIC may call it
	owner      string // empty for the schema's owner
}

// ReadFunctions returns, by schema, the functions that have one of the names.
func ReadFunctions(ctx context.Context, conn *pgx.Conn, pattern string, names []string) (map[string]Functions, error) {
	const query = `
		SELECT n.nspname, p.proname, p.pronargs, ` + sql.Definition + `, p.prosrc,
			EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0 AND a.privilege_type = 'EXECUTE'),
			CASE WHEN p.proowner <> n.nspowner THEN p.proowner::regrole::text ELSE '' END
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
		WHERE (n.nspname ~ $1 OR n.nspname = $2) AND p.proname = ANY ($3)`
	rows, _ := conn.Query(ctx, query, pattern, mapsql.Helper, names) // rows has the error
	all := map[string]Functions{}
	var schema string
	var key functionKey
	var f function
	_, err := pgx.ForEachRow(rows, []any{&schema, &key.name, &key.args, &f.definition, &f.body, &f.public, &f.owner}, func() error {
		if all[schema] == nil {
			all[schema] = Functions{}
		}
		all[schema][key] = f
		return nil
	})
	return all, err
}

// Names returns the names of the functions that scripts create.
func Names(scripts ...string) []string {
	var names []string
	for _, script := range scripts {
		for _, f := range sql.Functions(script) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Has reports whether there is a function with a name and a number of parameters.
func (f Functions) Has(name string, args int) bool {
	_, ok := f[functionKey{name, args}]
	return ok
}

// Changed reports whether a function of a script is missing, or has another definition, body or grant to PUBLIC.
func (f Functions) Changed(script string) bool {
	for _, want := range sql.Functions(script) {
		found, ok := f[functionKey{want.Name, want.Args}]
		if !ok || found.definition != want.Definition || found.public != want.Public || found.body != want.Body {
			return true
		}
	}
	return false
}

// RestorePublic returns statements that grant functions to PUBLIC, or revoke them, as a script does when it creates
// them. A script that replaces a function keeps its grants.
func (f Functions) RestorePublic(schema, script string) string {
	var b strings.Builder
	for _, want := range sql.Functions(script) {
		found, ok := f[functionKey{want.Name, want.Args}]
		args, _, _ := strings.Cut(want.Definition, " RETURNS ")
		switch {
		case !ok || found.public == want.Public:
		case want.Public:
			fmt.Fprintf(&b, "GRANT EXECUTE ON FUNCTION %s.%s%s TO PUBLIC;\n", schema, want.Name, args)
		default:
			fmt.Fprintf(&b, "REVOKE EXECUTE ON FUNCTION %s.%s%s FROM PUBLIC;\n", schema, want.Name, args)
		}
	}
	return b.String()
}

// repair says how to restore a function that was changed.
const repair = "; kiloshard upgrade --repair restores it"

// Compare adds the difference between a function of a schema and that of a script.
func (f Functions) Compare(l *difference.List, kind, schema string, want sql.Function) {
	name := fmt.Sprintf("%s with %d parameters", want.Name, want.Args)
	if want.Args == 1 {
		name = want.Name + " with 1 parameter"
	}
	found, ok := f[functionKey{want.Name, want.Args}]
	switch {
	case !ok:
		l.Add(kind, schema, name+" is missing", "the function; kiloshard create creates it")
	case found.definition != want.Definition:
		l.Add(kind, schema, name+" is "+found.definition, want.Definition+repair)
	case found.public != want.Public:
		l.Add(kind, schema, fmt.Sprintf("%s: PUBLIC may call it: %t", name, found.public), fmt.Sprint(want.Public)+repair)
	case found.owner != "":
		l.Add(kind, schema, name+" belongs to role "+found.owner, "the schema's owner")
	case found.body != want.Body:
		l.Add(kind, schema, name+" is "+oneLine(found.body), oneLine(want.Body)+repair)
	}
}

// oneLine returns the body of a function on one line, shortened.
func oneLine(body string) string {
	const limit = 160
	line := strings.Join(strings.Fields(body), " ")
	if len(line) > limit {
		line = line[:limit] + "…"
	}
	return line
}
