// Package views is gate 1 of an adoption: each shard becomes a schema of updatable views over the old tables, in the old database.
//
// A view has the rows of one shard and WITH CHECK OPTION, so Postgres refuses an INSERT or an UPDATE that would leave the shard. It is
// security_invoker: a role can do with a view what it can do with the old table, and policies apply to it. The view of a table in
// public that is keyed by user_id, of shard 7 of 64, is
//
//	create view shard_00007.albums with (security_invoker = true) as
//	select t.id, t.user_id, t.title from public.albums t where ((t.user_id % 64 + 64) % 64) = 7 with cascaded check option
//
// and that of a chained table has exists (select from public.albums …) there. [Make] makes the views of all shards; no row moves, and
// code that names the old tables goes on. A statement trigger on each old table records writes that come without a shard's path: see
// package ledger. [Status] reports them. [Back] takes all of it away.
package views
