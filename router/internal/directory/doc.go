// Package directory knows the keys that have an entry, which says in which shard they are: it looks entries up, keeps them
// for a while, makes them for new keys, and changes them.
//
// An entry is a row of the table kiloshard_directory in the shard that [shards.Map.EntryShard] names. How many keys a shard
// has is a row of its table kiloshard_usage, so that one statement both counts a key and keeps the shard's capacity.
//
// What several callers need at the same time is done once.
package directory
