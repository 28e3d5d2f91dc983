// Package adopt is the way in: one Postgres database becomes shards while it serves.
//
// [Look] is the first step. It reads the catalog and the rows of a database in one read-only transaction, writes nothing there, and
// returns a [Plan]: what each table becomes, and what stands in the way. A table is
//
//	keyed      a column has the key: albums.user_id
//	chained    a foreign key leads to a table that reaches the key: photos.album_id → albums.user_id
//	reference  without a key, but rows of shards refer to it
//	left       it stays where it is
//	undecided  a person has to say
//
// A [File], adopt.yaml, keeps the decisions of people. Look takes them, and decides what is left if structure and rows allow one
// answer. Each foreign key that can lead from a row to one of another key is counted: rows that do so would be in another shard than the
// row that they refer to. Rows without a key are counted too. A table with either is undecided until the file accepts them.
//
// Package queries says of each statement of a service where it goes with this plan, and package page writes both as HTML.
package adopt
