// Package entities keeps documents without a schema, and tables that index them, as "How FriendFeed uses MySQL to store
// schema-less data" describes it.
//
// An entity is a row of the table entities: an ID, a document, and when it was written. Its shard is that of its ID. An index
// is a table of its own, such as index_user_id: the values of some properties, and the ID of the entity that has them. Its rows
// are on the shard of the property that leads, so that all entities of a user are found on one shard, wherever they are. A new
// property needs no migration, and a new index only a new table: entities are never locked or rewritten for it.
//
//	store, err := entities.Open(r, definition)
//	err = store.Put(ctx, id, []byte(`{"user_id": "f48b", "title": "…", "link": "http://…"}`))
//	page, next, err := store.Index("index_user_id").Page(ctx, "f48b", entities.Page{})
//
// # What holds
//
// The entity is the truth. It is written first, and its index rows follow, in other shards, where no transaction reaches. So an
// index is a hint: a query reads index rows, then the entities, and leaves out each entity whose document, as it is by then,
// does not give the very index row that was found. What a query may miss, for as long as an index row is under way, is an
// entity that was written a moment ago.
//
// No index row is forgotten. The statement that writes an entity also writes, in the same shard, a row of the table
// entity_work, which says what its index rows were and are to be. That row goes when the index rows are written, and only if
// the entity has not changed since. Otherwise its writer repairs the index rows of what is there by then, after it has added
// them to entity_work. If a writer dies, the row stays, and a cleaner does its work: see [Store.Clean]. Workers take rows by
// FOR UPDATE SKIP LOCKED, newest first, each for a limited time. Who writes index rows does so within half of that time, by
// the clock of Postgres: a writer that was asleep for longer writes and removes nothing. A writer that finds the work of others
// with its entity, in the same statement, trusts none of them: it writes all index rows of its document.
//
// In a unique index one entity has a value, by the primary key. The row is written before the entity, so that [Store.Put] can
// return [ErrTaken].
//
// # A new index
//
// Create its table by a migration, deploy the definition with it to all programs that write, then run [Store.Fill], or
// kiloshard cleaner --index NAME: it walks from the newest entity back, keeps its position in every shard, and at the end looks
// at each row of the index for stale ones. Until then queries by it find part of the entities. To drop an index, take it out of the
// definition, deploy that, then drop the table.
package entities
