// Package shards is the model of a sharded cluster: which shards exist, on which host each one
// lives, how an ID is put together, and the arithmetic on all of it. It talks to no database.
//
// A shard is a logical thing: a [Number] from 0 up, one Postgres schema on one [Host]. A [Map]
// says where every shard lives. It is built from a [Config], which is what kiloshard.yaml holds,
// never changes once built, and is safe for concurrent use.
//
// Which shard a user's rows are in, the map's [Strategy] says: arithmetic on a [Key], or a directory, a
// table in the shards of which the map only knows where it is.
//
// A map changes while services run: a shard moves, a host is added, shards are opened. Which map may follow which
// [CheckChange] says. The map is kept in kiloshard.yaml itself or in a [Store], where package mapstore finds it; then
// kiloshard.yaml only says where that is: see [Config.Remote].
//
// An [ID] is a positive 64-bit number made inside Postgres. From the high bits down it holds the
// milliseconds since the map's epoch, the number of its shard, and a slot that tells apart the
// IDs of one millisecond. Which fields there are and how wide each is, the [Layout] says:
//
//	  63  62                                      23  22           10  9          0
//	+---+------------------------------------------+---------------+-------------+
//	| 0 | milliseconds since the epoch             | shard         | slot        |
//	+---+------------------------------------------+---------------+-------------+
//
// The layout that Instagram published, 41 bits of time, 13 of shard and 10 of sequence, adds up to
// 64 bits. A Postgres bigint is signed, so one bit of the time cannot be used: such a layout lasts
// 2^40 milliseconds, 34.8 years, from its epoch. [Layout.End] tells the date.
//
// A layout may put a type between shard and sequence, a number for each table, say; and it may do
// without the time. Pinterest's has 16 bits of shard, 10 of type and 36 of a table's own sequence:
//
//	  63 62  61                46  45         36  35                            0
//	+-------+--------------------+--------------+-------------------------------+
//	| 0   0 | shard              | type         | sequence                      |
//	+-------+--------------------+--------------+-------------------------------+
package shards
