// Package shards is the model of a sharded cluster: which shards exist, which host has each of them, how an ID is put
// together, and the arithmetic on all of it. It talks to no database.
//
// A shard has a [Number], from 0 up, and is one Postgres schema on one [Host]. A [Map] says on which host every shard
// is. A [Config], the content of kiloshard.yaml, makes one. A map never changes and is safe for concurrent use.
//
// The map's [Strategy] says which shard holds a user's rows: by arithmetic on a [Key], or by a directory, a table in the
// shards. The map knows which shard has a key's entry there, but not what the entry says.
//
// The map changes while services run: a shard moves, a host is added, shards are opened. [CheckChange] says whether a
// map may replace another. The map is kept in kiloshard.yaml, or in a [Store] that package mapstore reads; then
// kiloshard.yaml only names the store: see [Config.Remote].
//
// An [ID] is a positive 64-bit number made inside Postgres. From the high bits down it holds the milliseconds since the
// map's epoch, the number of its shard, and a slot that tells apart the IDs of one millisecond. The [Layout] says which
// fields an ID has and how wide each is:
//
//	  63  62                                      23  22           10  9          0
//	+---+------------------------------------------+---------------+-------------+
//	| 0 | milliseconds since the epoch             | shard         | slot        |
//	+---+------------------------------------------+---------------+-------------+
//
// The layout that Instagram published, 41 bits of time, 13 of shard and 10 of sequence, adds up to 64 bits. A Postgres
// bigint is signed, so one bit of the time cannot be used: such a layout lasts 2^40 milliseconds, 34.8 years, from its
// epoch. [Layout.End] returns the date.
//
// A layout may have a type between shard and sequence, such as a number for each table, and it may leave out the time.
// Pinterest's has 16 bits of shard, 10 of type and 36 of a table's own sequence:
//
//	  63 62  61                46  45         36  35                            0
//	+-------+--------------------+--------------+-------------------------------+
//	| 0   0 | shard              | type         | sequence                      |
//	+-------+--------------------+--------------+-------------------------------+
package shards

// The files build on one another, each on files before it:
//
//   - the model: field_errors, id, layout, layout_ids, set, shard_errors, key
//   - strategies and hosts: store, host, allocation, strategy, strategy_check, finder, generator
//   - the config: config, format, check
//   - the map: map, map_keys, change_keys, change
//   - kiloshard.yaml: load, yaml
//
// Packages in internal know nothing of this one: pick finds the shard of a key, connstring and endpoint deal with
// addresses, configfile reads and writes YAML, and configtext has the prose of kiloshard.yaml.
