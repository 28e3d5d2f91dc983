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
