// Package shards is the model of a sharded cluster: which shards exist, on which host each one
// lives, how an ID is put together, and the arithmetic on all of it. It talks to no database.
//
// A shard is a logical thing: a [Number] from 0 up, one Postgres schema on one [Host]. A [Map]
// says where every shard lives. It is built from a [Config], which is what kiloshard.yaml holds,
// never changes once built, and is safe for concurrent use.
//
// The map's [Strategy] says which shard holds a user's rows: by arithmetic on a [Key], or by a directory, a
// table in the shards whose location the map knows, but not its content.
//
// The map changes while services run: a shard moves, a host is added, shards are opened. [CheckChange] says whether a map
// may replace another. The map is kept in kiloshard.yaml, or in a [Store] that package mapstore reads; then
// kiloshard.yaml only names the store: see [Config.Remote].
//
// An [ID] is a positive 64-bit number made inside Postgres. From the high bits down it holds the
// milliseconds since the map's epoch, the number of its shard, and a slot that tells apart the
// IDs of one millisecond. The [Layout] says which fields an ID has and how wide each is:
//
//	  63  62                                      23  22           10  9          0
//	+---+------------------------------------------+---------------+-------------+
//	| 0 | milliseconds since the epoch             | shard         | slot        |
//	+---+------------------------------------------+---------------+-------------+
//
// The layout that Instagram published, 41 bits of time, 13 of shard and 10 of sequence, adds up to
// 64 bits. A Postgres bigint is signed, so one bit of the time cannot be used: such a layout lasts
// 2^40 milliseconds, 34.8 years, from its epoch. [Layout.End] returns the date.
//
// A layout may have a type between shard and sequence, such as a number for each table, and it may leave out
// the time. Pinterest's has 16 bits of shard, 10 of type and 36 of a table's own sequence:
//
//	  63 62  61                46  45         36  35                            0
//	+-------+--------------------+--------------+-------------------------------+
//	| 0   0 | shard              | type         | sequence                      |
//	+-------+--------------------+--------------+-------------------------------+
package shards
