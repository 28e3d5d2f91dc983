// Package objects keeps objects whose fields may change without a migration, as "Sharding Pinterest: How we scaled our
// MySQL fleet" describes it.
//
// An object, such as a pin, is a row of a table of its type, with a document for its fields. Its ID names the shard, the
// type and the row, so that it is found from its ID alone:
//
//	  63 62  61                46  45         36  35                            0
//	+-------+--------------------+--------------+-------------------------------+
//	| 0   0 | shard              | type         | local_id of the type's table  |
//	+-------+--------------------+--------------+-------------------------------+
//
// This is the [Layout] of objects, whatever the layout of the map is, which is that of next_id(). Where the map has the
// same, [router.Router.ForID] and kiloshard route --id know objects too. The types and their numbers are in the map:
//
//	types:
//	  - {name: pin, number: 1}
//	  - {name: board, number: 2}
//
// What there is:
//
//   - [Type]: the objects of one type. Get, GetMany, Create, CreateNear another object, Update, Delete, Undelete, Purge.
//   - [Mapping]: one-way relations, such as board_has_pins, on the shard of the object that they lead from.
//     [Join] reads the objects that they lead to; [Pair] keeps both directions.
//   - [Mod]: rows by any bytes, such as a name or an address, on shard md5(key) % N.
//   - [Tables]: the tables of all these, as a migration of the service.
//
// # What holds
//
// Updates of one object wait for each other in Postgres, by SELECT … FOR UPDATE, so none is lost. Fields that a program
// does not know survive its updates: Postgres removes from the document what the program knows and adds what it has
// made of that. A pair of objects has one row in a mapping, by its primary key. Pages go on behind the last row of the
// page before, so that a row that stays is seen once, whatever is added or removed. A Mod's row changes only in the version
// that was read.
//
// There is no transaction over several shards. A [Pair] is two rows in two shards: the first one counts, and
// [Pair.Repair] makes the second agree.
//
// # Capacity
//
// New objects go to the shards of hosts that are not closed, see [Type.Create]. So kiloshard open --shards 4096-8191
// --host pg-c, and closed: true for the hosts that are full, make room for new objects; the old ones stay where their IDs
// say.
package objects
