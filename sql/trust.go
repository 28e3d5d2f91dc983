package sql

import "strings"

// Ours names the objects that Kiloshard makes and uses in the schemas of shards. Those in its helper schema are built in.
type Ours struct {
	Schemas   []string // of shards, plain identifiers; or else Pattern
	Pattern   string   // a regular expression for the names of shards' schemas
	Relations []string // tables and sequences
	Functions []string // without their parameters

	DatabaseOwner bool // trust objects of the database's owner, unless the current role is a superuser
}

// Foreign returns a query for objects of other roles where only Kiloshard's own should be: schemas, tables, sequences and
// functions whose owner is neither the current role, nor a role that it is a member of, nor a superuser; triggers, rules,
// policies and defaults on Kiloshard's tables; and grants that let another role add such objects. Its rows are the kind, the
// schema, what was found, and what was expected. It reads only Postgres's catalogs. Run it with a search_path of pg_catalog.
func Foreign(o Ours) string { return render("foreign", trustData{o}) }

// RefuseForeign returns a script that fails with SQLSTATE [Refused] if [Foreign] finds anything except grants. It sets the
// search_path for the rest of the transaction.
func RefuseForeign(o Ours) string { return render("refuse foreign", trustData{o}) }

// trustData is the template data of trust.sql.
type trustData struct{ Ours }

func (trustData) Refused() string { return Refused }

func (trustData) FenceMark() string { return FenceMark }

// Shards is a condition on the name of a schema.
func (d trustData) Shards() string {
	if d.Pattern != "" {
		return "n.nspname ~ '" + d.Pattern + "'"
	}
	return "n.nspname = ANY (" + names(d.Schemas) + ")"
}

// names returns plain identifiers as an array constant.
func names(all []string) string { return "'{" + strings.Join(all, ",") + "}'::pg_catalog.name[]" }
