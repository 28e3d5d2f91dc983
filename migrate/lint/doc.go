// Package lint finds statements in a migration that lock a table for long, rewrite it, break
// services that still run, or cannot work in every shard.
//
// It reads SQL by Postgres 17's own parser (libpg_query, as WebAssembly: no C compiler is needed).
// It sees the text and no database, so it does not know how large a table is, what type a column
// had, or which functions are volatile. Where it cannot tell, it warns. It does not look into what
// Postgres itself reads later: the body of a function or of a DO block, and EXECUTE.
//
// Tables that the text itself creates are empty and used by nobody, so statements on them do not
// count. Locks that are held for a moment, such as that of ADD COLUMN, do not count either; what
// they may wait for is bounded by a lock timeout.
//
// The lock levels are those of the manual's pages on ALTER TABLE and on explicit locking.
package lint
