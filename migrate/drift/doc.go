// Package drift compares the structure of all shards: what a shard's schema holds, without its rows.
//
// [Look] has every host reduce the structure of each of its shards to a hash, the fingerprint, so that
// little more than hashes travels, and groups the shards by it. Only of one shard of each group the
// structure itself is fetched, to say in what the group differs from the largest one.
//
// # What counts
//
// A shard's structure is a set of statements which would make it, as Postgres writes them: of tables
// (kind, persistence, options, partitioning, row security, replica identity), columns (order, name, type,
// collation, NOT NULL, default, identity, generated, storage), constraints (also whether they are
// validated, deferrable, switched off), indexes (also whether they are valid), sequences, views and
// materialized views (also whether they can be read), triggers (also whether they are enabled), rules, policies, functions and procedures,
// types, extended statistics and comments. Of aggregates, operators, collations and the like it is only
// told that they are there.
//
// The name of the shard's own schema is {{.schema}} in these texts, as in a template of tern's, wherever it
// stands, also within other names and within the bodies of functions. The name of another shard's schema is
// not replaced, and so is a difference.
//
// The shard's own number is {{.shard}} where all shards of a group have their own in that place. A number
// that all have alike is left as it is. To tell which of the two it is takes shards whose numbers stand for
// nothing else in the structure: among a handful of shards they may be missing, and shards that differ by their
// number then count as different.
//
// # What does not count
//
// Rows, the values of sequences, statistics, owners, privileges and tablespaces. Nor what the toolkit makes
// itself, which kiloshard verify compares with the map: next_id, next_ids and next_id_seq, the map's own
// generators, the tables of a directory, and the table schema_version.
//
// Major versions of Postgres write some things down differently, such as views in Postgres 18. Where the hosts of a
// cluster are of several, shards with such things count as different.
//
// # What it costs
//
// Catalogs alone are read, and no table but schema_version is locked. A host answers by one query for so many
// shards; see [Config.Batch]. What Postgres can only write down while it locks the tables behind it, which are
// views, rules, policies and functions in BEGIN ATOMIC, is read in further queries of 200 at a time, so that
// no query holds many locks.
package drift
