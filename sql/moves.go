package sql

import "fmt"

// Moves returns the script that makes the ledger of moves, or brings it to the present version, which stands in the
// comment of its table. It waits for an installation under way.
func Moves() string {
	script := render("moves.sql", engineData{})
	return withVersion(script, "TABLE kiloshard.moves", versionOf(script))
}

// MovesAreThere returns a query for whether a database needs no [Moves].
func MovesAreThere() string {
	const query = `select pg_catalog.obj_description(pg_catalog.to_regclass('kiloshard.moves'), 'pg_class') is not distinct from '%s'`
	return fmt.Sprintf(query, VersionMark+Version(Moves()))
}

// FenceMark is the relation that marks a schema with the name of a shard as the fence of one that has moved away.
const FenceMark = "kiloshard_moved"

// MoverAtWork is a condition on a row m of kiloshard.moves: the session that works on the move is alive. A ledger of an older
// release does not name it.
const MoverAtWork = `EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.pid = (to_jsonb(m) ->> 'mover')::int AND a.datname = pg_catalog.current_database()
	AND a.application_name = 'kiloshard move' AND pg_catalog.has_schema_privilege(a.usesysid, 'kiloshard', 'create'))`

// IsFence returns a condition for that a schema, whose name is the given expression of type text, is such a fence. A shard has
// its sequence, which nobody without the owner's rights can remove, whatever relations others make beside it.
func IsFence(schema string) string {
	relation := func(name string) string {
		return "pg_catalog.to_regclass(" + schema + " operator(pg_catalog.||) '." + name + "')"
	}
	return "(" + relation(FenceMark) + " is not null and " + relation("next_id_seq") + " is null)"
}
