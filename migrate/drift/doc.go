// Package drift compares the structure of all shards: everything in a shard's schema except the rows.
//
// [Look] lets every host reduce the structure of each shard to a hash, the fingerprint, so that little more than hashes
// is transferred, and groups the shards by it. It fetches the structure itself only of one shard of each group, to
// report how the group differs from the largest one.
//
// # What counts
//
// A shard's structure is the set of statements that would make it, as Postgres writes them: of tables
// (kind, persistence, options, partitioning, row security, replica identity), columns (order, name, type,
// collation, NOT NULL, default, identity, generated, storage), constraints (also whether they are
// validated, deferrable, switched off), indexes (also whether they are valid), sequences, views and
// materialized views (also whether they can be read), triggers (also whether they are enabled), rules, policies, functions and procedures,
// types, extended statistics and comments. Aggregates, operators, collations and the like count only by
// their existence.
//
// {{.schema}} replaces the name of the shard's own schema in these texts, as in tern's templates, even within
// other names and in the bodies of functions. The name of another shard's schema is not replaced, so it is a
// difference. Two braces that are in a shard's own texts are {{"{{"}}, so that no text looks like a mark. [Render] takes
// the marks out of a text.
//
// {{.shard}} replaces the shard's own number where each shard of a group has its own number. A number that is
// the same in all shards stays. To distinguish the two, Look needs shards whose numbers have no other meaning
// in the structure. A handful of shards may have none; then shards that differ by their number count as
// different.
//
// # What does not count
//
// Rows, the values of sequences, statistics, owners, privileges and tablespaces; and Kiloshard's own objects, which
// kiloshard verify compares with the map: next_id, next_ids and next_id_seq, the map's generators, the tables of a
// directory, and the table schema_version.
//
// Major versions of Postgres write some objects differently, such as views in Postgres 18. If the hosts of a cluster have
// different versions, shards with such objects count as different.
//
// # Partitions and children
//
// A partition is a table of its own that is attached to its parent, as pg_dump writes it, and so are indexes. What a parent
// makes in its children has no statement, unless it differs there; columns have one that gives their position, default and settings.
// The names of NOT NULL constraints, and whether a child would keep them without its parent, do not count.
//
// # What it costs
//
// Look reads only catalogs, and locks no table except schema_version. A host answers one query for each [Config.Batch]
// shards. Postgres locks the underlying tables when it deparses views, rules, policies and functions with BEGIN ATOMIC,
// so further queries read those, 200 at a time, and no query holds many locks.
package drift
