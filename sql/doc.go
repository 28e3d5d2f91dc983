// Package sql holds what runs inside Postgres: the kiloshard helper schema that makes the IDs of a
// whole database, and shard.sql, one shard's schema. The helper schema is install.sql, then engine.sql
// for IDs with a time or local.sql for those without, then parts.sql and audit.sql; terms.sql has what both engines
// share. Read the files: this package only embeds them and fills in epoch, layout and names.
//
// Both scripts can run again. [Engine] installs over itself, and fails with SQLSTATE [Refused] if the database has
// shards of another epoch, layout, prefix or cluster. Run the scripts in a transaction, by the simple query protocol:
// they hold several statements.
package sql
