// Package rows moves the rows of an adopted database from its old tables into tables of the shards, while clients write, and back.
//
// [Tables] works on groups of shards. It checks that nobody writes without a shard's path, and closes the old tables for such writes. Then,
// for the shards of a group: hidden tables are made, the stage becomes copying, and all transactions that began before that was visible
// are waited for, so that every writer mirrors its rows. Rows are copied in batches, in the order of the key, with FOR SHARE and ON CONFLICT DO
// NOTHING. Transactions older than the end of the copy are waited for as well, so that no snapshot sees a part of it. Both sides are
// compared in one snapshot. Then one transaction of each shard takes the views away and puts the tables in their place. Its tries wait
// for locks for [Config.LockTimeout] at most, and clients behind it no longer than that. From then on what is written to a shard's
// tables is mirrored to the old ones.
//
// [Back] takes all of that back, from any point. [Finish] ends the mirrors, and drops the old tables later.
//
// Every step is recorded in the ledger in the transaction that takes it. A command that was killed is run again, and goes on.
package rows
