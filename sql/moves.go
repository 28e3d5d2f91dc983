package sql

import "fmt"

// Moves returns the script that creates the ledger of moves, or upgrades it to the present version, which the comment
// of its table holds. It waits for an installation under way.
func Moves() string {
	script := render("moves.sql", engineData{})
	return withVersion(script, "TABLE kiloshard.moves", versionOf(script))
}

// MovesAreThere returns a query that is true if [Moves] need not run.
func MovesAreThere() string {
	const query = `select pg_catalog.obj_description(pg_catalog.to_regclass('kiloshard.moves'), 'pg_class') is not distinct from '%s'`
	return fmt.Sprintf(query, VersionMark+Version(Moves()))
}

// FenceMark is the relation that marks a schema as the fence of a shard that has moved away.
const FenceMark = "kiloshard_moved"

// ArrivingSequence is what next_id_seq is called in the copy of a shard that is on its way: with [FenceMark] beside it the copy is a fence to
// whoever asks, and its next_id fails.
const ArrivingSequence = "kiloshard_arriving_seq"

// MoverAtWork is a condition on a row m of kiloshard.moves: the session that works on the move is alive.
const MoverAtWork = `EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.pid = m.mover AND a.datname = pg_catalog.current_database()
	AND a.application_name = 'kiloshard move' AND pg_catalog.has_schema_privilege(a.usesysid, 'kiloshard', 'create'))`

// IsFence returns a condition that is true if a schema is the fence of a shard that has moved away. The parameter is an
// expression of type text for the schema's name. A schema with next_id_seq is never a fence: only the owner can remove the
// sequence, so another role cannot pass a shard off as a fence.
func IsFence(schema string) string {
	return "(" + relation(schema, FenceMark) + " is not null and " + relation(schema, "next_id_seq") + " is null)"
}

// IsOldFence returns a condition that is true if a schema is such a fence, and not the copy of a shard that is on its way: nothing is lost
// with it.
func IsOldFence(schema string) string {
	return "(" + IsFence(schema) + " and " + relation(schema, ArrivingSequence) + " is null)"
}

// relation returns an expression for a relation of a schema, which is null if it is not there.
func relation(schema, name string) string {
	return "pg_catalog.to_regclass(" + schema + " operator(pg_catalog.||) '." + name + "')"
}
