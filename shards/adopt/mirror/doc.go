// Package mirror writes the functions and triggers that keep the rows of a shard equal in two places while an adoption moves them.
//
// # Old tables
//
// An AFTER trigger of each old table sees each row that a statement writes, unless the role kiloshard_adopt writes it. That role owns the
// functions of this package and nobody can become it, so current_user tells a mirror from everybody else. The trigger finds the shard of the
// row, refuses a row whose shard changes, and reads the shard's stage:
//
//	views    nothing else happens
//	copying  the row is upserted into, or deleted from, the hidden table of its shard
//	tables   the write is refused, in any session and with any search_path: the shard has the row now
//
// The trigger's name sorts before those of Postgres's own triggers, so that it sees a deleted parent before a cascade deletes the
// children. It deletes their copies at once, by foreign key. When the cascade deletes the children themselves they reach no shard, and
// nothing is left to do. A parent of a chain that children still refer to can be neither deleted nor renamed, also if the foreign key is
// deferred: so no row loses its shard unseen. Hidden tables have no foreign keys, since a statement's rows are mirrored one by one.
//
// Under REPEATABLE READ a statement does not see what the copy has inserted since the transaction's snapshot. A DELETE would delete
// nothing, and the row would stay. So the mirror inserts the old row first, ON CONFLICT DO NOTHING, which fails with a serialization error
// (40001) if there is a row that the transaction cannot see.
//
// # Tables of shards
//
// Triggers of a shard's tables write to the old ones. Their names sort after those of Postgres's own triggers, so children are
// deleted before their parents. The old tables' foreign keys between sharded tables are deferrable for that time, and deferred in
// transactions that write through a shard's tables: the shard's own foreign keys are checked at once.
//
// A trigger of each shard's table is disabled, and names its columns: so Postgres refuses a migration that drops one or changes its type, as it
// does for the columns of old tables, which views name.
package mirror
