// Package objects keeps objects whose fields may change without a migration, as "Sharding Pinterest: How we scaled our
// MySQL fleet" describes it.
//
// An object, such as a pin, is a row in the table of its type. A document in the row holds its fields. Its ID names the shard,
// the type and the row:
//
//	  63 62  61                46  45         36  35                            0
//	+-------+--------------------+--------------+-------------------------------+
//	| 0   0 | shard              | type         | local_id of the type's table  |
//	+-------+--------------------+--------------+-------------------------------+
//
// This is the [Layout] of objects. The map's layout, which next_id() uses, may be another one. If it is the same,
// [router.Router.ForID] and kiloshard route --id also accept the IDs of objects. The types and their numbers are in the map:
//
//	types:
//	  - {name: pin, number: 1}
//	  - {name: board, number: 2}
//
// The package has:
//
//   - [Type]: the objects of one type. Get, GetMany, Create, CreateNear another object, CreateMany, Update, Delete, Undelete, Purge.
//   - [Mapping]: one-way relations, such as board_has_pins. A row is on the shard of the object that it leads from.
//     [Join] reads the objects that the rows lead to.
//   - [Mod]: rows with any bytes as their key, such as a name or an address, on shard md5(key) % N. Postgres refuses a program
//     with another N than the table has, see [ModTable].
//   - [Tables]: the tables of all these, as a migration of the service.
//
// What is in one shard, such as a board, its pins and its rows of board_has_pins, can be written in one transaction: see
// [Type.Within].
//
// # Guarantees
//
// Updates of one object wait for each other in Postgres, by SELECT … FOR UPDATE, so none is lost. An update writes only what the
// program has changed, and keeps fields that it does not have. A mapping has at most one row for
// two objects, by its primary key. A page begins after the last row of the page before it, so that pages show each row once
// while others are added or removed. A row of a Mod changes only if it still has the version that was read.
//
// There are no transactions over several shards. A relation in both directions is two mappings, such as board_has_pins and
// pin_has_boards, whose rows are in two shards: if a program ends between the two writes, or two programs write at the same
// time, they disagree, and nothing repairs that. Read one of them for what must be right.
//
// # Capacity
//
// New objects go to the shards of hosts that are not closed, see [Type.Create]. To make room for them, open shards with
// kiloshard open --shards 4096-8191 --host pg-c, and set closed: true on the hosts that are full. Old objects stay in the
// shards that their IDs name.
package objects
