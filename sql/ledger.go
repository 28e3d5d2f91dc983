package sql

import "fmt"

// Ledger returns the script that creates the ledger of migrations, or upgrades it to the present version, which the
// comment of its table holds. It waits for an installation under way.
func Ledger() string {
	script := render("ledger.sql", ledgerData{})
	return withVersion(script, "TABLE kiloshard.ledger", versionOf(script))
}

// ledgerData is the template data of ledger.sql.
type ledgerData struct{ engineData }

// Turn names the parameters of functions that hold a shard and its schema.
func (ledgerData) Turn() turnData { return turnData{ShardText: "shard", SchemaText: "schema"} }

// LedgerIsThere returns a query that is true if [Ledger] need not run: the database has the present version, or it has
// the functions that callers need and the role does not own the ledger, so it cannot upgrade it.
func LedgerIsThere() string {
	const query = `select pg_catalog.to_regprocedure('kiloshard.begin_migration(int,int,text,int,text,text,text,boolean)') is not null
	and pg_catalog.to_regprocedure('kiloshard.end_migration(text,int,text,text,int,int,text,text,text,boolean)') is not null
	and pg_catalog.to_regprocedure('kiloshard.make_version_table(text)') is not null
	and pg_catalog.to_regprocedure('kiloshard.keep_inside(text,boolean,text[])') is not null
	and pg_catalog.to_regprocedure('kiloshard.begin_shared(text,text,int,int,text,text,text,text,text,text)') is not null
	and (pg_catalog.obj_description(c.oid, 'pg_class') is not distinct from '%s' or not pg_catalog.pg_has_role(c.relowner, 'usage'))
from (select pg_catalog.to_regclass('kiloshard.ledger')) l (oid) left join pg_catalog.pg_class c on c.oid = l.oid`
	return fmt.Sprintf(query, VersionMark+Version(Ledger()))
}
