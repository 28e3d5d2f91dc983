// Package sql holds what runs inside Postgres: the kiloshard helper schema that makes the IDs of a
// whole database, and shard.sql, one shard's schema. The helper schema is install.sql, then engine.sql
// for IDs with a time or local.sql for those without, then parts.sql; terms.sql has what both engines
// share. The files are the thing to read; this package embeds them and puts in epoch, layout and names.
//
// Both scripts may be run again: [Engine] installs over itself, and refuses with SQLSTATE [Refused]
// where shards of another epoch, layout, prefix or cluster exist. They are made for the simple
// query protocol, several statements at a time, inside a transaction.
package sql
