// Package entities stores documents without a schema, and tables that index them, as described in "How FriendFeed uses MySQL
// to store schema-less data".
//
// An entity is a row of the table entities: an ID, a document, and the time of its last write. Its ID decides its shard. Each
// index is a table, such as index_user_id. Its rows have the values of some properties, and the ID of the entity. The first
// property decides the shard of the row, so one shard has the index rows of all entities of a user. A new property needs no
// migration. A new index needs only a new table: entities are never locked or rewritten for it.
//
//	store, err := entities.Open(r, definition)
//	err = store.Put(ctx, id, []byte(`{"user_id": "f48b", "title": "…", "link": "http://…"}`))
//	page, next, err := store.Index("index_user_id").Page(ctx, "f48b", entities.Page{})
//
// # Guarantees
//
// The entity is the truth. A writer writes it first and then its index rows, which are in other shards and not in the same
// transaction. So an index is only a hint. A query reads index rows, then the entities, and skips each entity whose current
// document does not have the index row that the query found. A query may miss an entity that was just written, until its
// index row is written.
//
// No index row is lost. The statement that writes an entity also writes a row of the table entity_work in the same shard. It
// holds the old and the new index rows of the entity. The writer deletes it after it has written the index rows, but only if
// the entity has not changed since. If the entity has changed, the writer adds the index rows of the current document to
// entity_work and repairs them. If a writer dies, its row stays, and a cleaner does the work: see [Store.Clean]. Workers take
// rows with FOR UPDATE SKIP LOCKED, newest first, each for a limited time. A writer writes index rows only within half of
// that time, by the clock of Postgres: one that was suspended for longer writes and removes nothing. If the statement that
// writes an entity finds work of other writers for it, the writer writes all index rows of its document.
//
// In a unique index the primary key ensures that one entity has a value. The row is written before the entity, so [Store.Put]
// can return [ErrTaken].
//
// # A new index
//
// Create its table with a migration, deploy the new definition to all programs that write, and then run [Store.Fill] or
// kiloshard cleaner --index NAME. Fill reads entities from the newest to the oldest and stores its position in every shard. At
// the end it checks each row of the index and removes stale ones. Until then queries on the index find only some of the
// entities. To drop an index, remove it from the definition, deploy that, and then drop the table.
package entities
