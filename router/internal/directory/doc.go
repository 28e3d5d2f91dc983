// Package directory manages the entries of keys. An entry names the shard of its key. The package looks entries up, caches
// them, creates them for new keys, and changes them.
//
// An entry is a row of the table kiloshard_directory, in the shard that [shards.Map.EntryShard] returns. The number of keys
// of a shard is a row of its table kiloshard_usage, so one statement both counts a key and enforces the shard's capacity.
//
// If several callers need the same work at the same time, one of them does it for all.
package directory
