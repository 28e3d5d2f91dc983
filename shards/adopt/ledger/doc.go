// Package ledger is the ledger of an adoption, in schema kiloshard_adopt of the old database: at which gate it is, what the rows of
// each shard are in, what commands did, and which sessions wrote to the old tables without a shard's path.
//
// [Install] makes the schema and the role kiloshard_adopt. The role cannot log in and is granted to nobody. It owns functions that copy
// changes of rows from one table to another, so a trigger knows such a write by current_user = 'kiloshard_adopt', which no setting can
// imitate. [Own] lets a transaction make objects that the role owns.
//
// A command holds a [Lock] while it works. [SetGate] and [SetStage] compare and swap. All readers first refuse a schema that another
// role has made.
package ledger
