package sql

import "fmt"

// Ledger returns the script that makes the ledger of migrations, or brings it to the present version, which stands in
// the comment of its table. It waits for an installation under way.
func Ledger() string {
	script := render("ledger.sql", ledgerData{})
	return withVersion(script, "TABLE kiloshard.ledger", versionOf(script))
}

// ledgerData is what ledger.sql is rendered with.
type ledgerData struct{ engineData }

// Turn is whose that functions take, by the names of their parameters.
func (ledgerData) Turn() turnData { return turnData{ShardText: "shard", SchemaText: "schema"} }

// LedgerIsThere returns a query for whether a database needs no [Ledger]: it has the present version, or it has the
// functions that are called, and the role does not own the ledger, so that it has to work with it as it is.
func LedgerIsThere() string {
	const query = `select pg_catalog.to_regprocedure('kiloshard.begin_migration(int,int,text,int,text,text,text,boolean)') is not null
	and pg_catalog.to_regprocedure('kiloshard.end_migration(text,int,text,text,int,int,text,text,text,boolean)') is not null
	and pg_catalog.to_regprocedure('kiloshard.make_version_table(text)') is not null
	and (pg_catalog.obj_description(c.oid, 'pg_class') is not distinct from '%s' or not pg_catalog.pg_has_role(c.relowner, 'usage'))
from (select pg_catalog.to_regclass('kiloshard.ledger')) l (oid) left join pg_catalog.pg_class c on c.oid = l.oid`
	return fmt.Sprintf(query, VersionMark+Version(Ledger()))
}
