// Package entities stores documents without a schema, and tables that index them, as described in "How FriendFeed uses MySQL
// to store schema-less data".
//
// An entity is a row of the table entities: an ID, a document, a version, and the time of its last write. Its ID decides its
// shard. Each index is a table, such as index_user_id. Its rows have the values of some properties, and the ID of the entity.
// The first property decides the shard of the row, so one shard has the index rows of all entities of a user. A new property
// needs no migration. A new index needs only a new table: entities are never locked or rewritten for it.
//
//	store, err := entities.Open(ctx, r, definition)
//	err = store.Put(ctx, id, []byte(`{"user_id": "f48b", "title": "…", "link": "http://…"}`))
//	page, next, err := store.Index("index_user_id").Page(ctx, "f48b", entities.Page{})
//
// # Guarantees
//
// The entity is the truth. A writer writes it first and then its index rows, which are in other shards and not in the same
// transaction. So an index is only a hint. A query reads index rows, then the entities, and skips each entity whose current
// document does not have the index row that the query found. A query may miss an entity that was just written, until its
// index row is written. After a Put that returns nil, queries find the entity by all values of its document.
//
// Each write of an entity has a version, higher than all before, also if the entity was deleted in between. An index row has
// the version of the write that wrote it. Work for an older write removes only rows with older versions, so it never removes a row
// that a newer write needs, however late it runs. No time and no clock decides that.
//
// The transaction that writes an entity also writes a row of the table entity_work in the same shard, with the old and the new
// indexed properties. The writer deletes it after it has written the index rows, but only if the entity has not changed since.
// If a writer dies, its row stays, and a cleaner does the work: see [Store.Clean]. A cleaner also compares all entities and
// index rows, slowly and without end, and so finds rows that a host lost.
//
// In a unique index at most one entity has a value, also if writers die at any point. Its row is written before the
// entity: [Store.Put] first writes a row of entity_work that claims the values, then the index rows, and then the entity, but only
// if no other write or cleaner has ended the claim. The writer of an ended claim removes its rows, or a cleaner does. A Put that
// meets the row of another entity looks whether that entity has the value, or is about to write it, and removes the row if not.
// Package prove checks the protocol in all orders of steps. A host that fails over to a standby without its newest transactions may lose index rows, and
// two entities may get a value then: the cleaner reports them.
//
// # Definitions
//
// Table entity_indexes in each shard has the number of shards and the definitions of all indexes. [Open], each write and
// the cleaner compare them with those of the program, and return a [DefinitionError] if they differ.
//
// # A new index
//
// Create its table with a migration, deploy the new definition to all programs that write, and then run [Store.Fill] or
// kiloshard cleaner --index NAME. From then on programs that do not know the index cannot write. Fill reads entities from the
// newest to the oldest and stores its position in every shard. At the end it checks each row of the index and removes stale
// ones. Until then queries on the index find only some of the entities.
//
// # Dropping an index
//
// Call [Store.Release], deploy a definition without the index, and call [Store.Drop], or use kiloshard cleaner --release NAME
// and --drop NAME.
package entities
