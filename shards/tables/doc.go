// Package tables knows the tables of a database and the foreign keys between them: how each row reaches its key.
//
// [Read] reads a [Catalog]: tables, columns, unique keys and foreign keys. A [Graph] starts from one column, the key, such as
// users.id. A table reaches the key by a column of its own that refers to it, or over links: photos → albums → users. Such a
// way is a [Route]. [Graph.Route] returns the one that a table takes: if it was not chosen, a column of its own, else the links of
// which the fewest can be null, then the fewest links. [Graph.Crossings] returns the other foreign keys, which can lead to rows of
// another key.
//
//	photos.album_id → albums.id, albums.user_id → users.id
//
// gives photos one route, with one link and the column albums.user_id. [Route.Condition] makes it the condition that selects
// the rows of one key, or of one shard:
//
//	exists (select from "public"."albums" k1 where k1."id" = t."album_id" and k1."user_id" = $1)
//
// A composite foreign key that has the key's column carries the key: comments(user_id, photo_id) → photos(user_id, id) gives
// comments a column. A foreign key to another unique column of the key's table is a link. A partitioned table is one table. A
// table that inherits from another is a table of its own, since foreign keys are not inherited.
//
// [Graph.Order] is the order in which rows can be inserted; rows can be deleted in the reverse order.
package tables
