// Package lint finds statements in a migration that lock a table for long, rewrite it, break
// services that still run, or cannot work in every shard.
//
// It parses SQL with Postgres 17's own parser, by internal/sqltree. It sees only the text, no database, so it does
// not know how large a table is, what type a column had, or which functions are volatile. When in doubt, it warns.
// It does not look into text that Postgres parses later: the body of a function or of a DO block, and EXECUTE.
//
// Tables that the text itself creates, or one before it that no shard has run, are empty and unused, so it gives no warnings for them. It also
// gives none for locks that are held only briefly, such as that of ADD COLUMN; a lock timeout limits the
// wait for them.
//
// The lock levels are those of the manual's pages on ALTER TABLE and on explicit locking.
package lint
