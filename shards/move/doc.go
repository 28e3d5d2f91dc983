// Package move moves shards from one host to another while services write to them.
//
// It takes no extension and no proxy: the mover copies a shard, Postgres's logical replication brings what is written meanwhile, and a
// cutover of some milliseconds changes its place. [Run] takes each shard through these steps; each is in the ledger before it is begun:
//
//  1. prepare: what can be checked is checked, and the ledgers of both hosts get a row.
//  2. schema: the shard is made on the target as it is on the source, without rows, and without keys and indexes that nothing else of it
//     needs: tables, functions, sequences, owners and grants. The structures are compared. Until the switch the copy is a fence to routers,
//     its next_id fails, and a trigger on each table refuses writes.
//  3. publish: the source gets a publication of the shard's tables.
//  4. copy: the source gets a slot, and the mover copies the rows as of where that begins, and makes the other keys and indexes. The target
//     gets a subscription, which brings what was written since. Once it keeps up, the target takes statistics, and fills materialised
//     views, beside the comparison that follows.
//  5. cutover: one transaction on the source locks the shard's tables and sequences. A marker row is written by another
//     session; once the target shows it, the target has all that was written before. What is not replicated is copied: unlogged tables
//     and large objects. Rows are compared, the sequences' values are carried over, and the shard gets another name, with the fence in
//     its place.
//  6. fenced: the catalogs are asked whether what is behind the fence is what was compared; if somebody has changed it by hand, the fence
//     comes down, and the cutover begins again. The map is changed by a compare-and-swap. From then on the target serves.
//  7. switched: subscription, slot and publication are dropped. The old schema stays on the source until [Clean].
//
// [Promote] moves half of a host's shards at once, without a copy, to a physical standby of it, which is promoted.
//
// # What a caller meets
//
// A statement that comes during the cutover waits for the locks, and then finds the fence: views and functions of the same names whose
// use is an error, SQLSTATE KSM01, that says where the shard is. It is one for every role and setting. An error of Postgres's own get TRUNCATE,
// COPY to a client, a COPY without a list of columns, ON CONFLICT ON CONSTRAINT, MERGE before Postgres 17, and calls of functions with defaults
// of arguments or with types of the shard. Sequences behind the fence are at their ends. A router takes that, as well as the mark of a fence in its
// entry, for the sign to load the newest map and to send the statement there. Who knows of no router reads the error.
//
// # What remains after a failure
//
// A cutover that cannot have its locks, or whose target falls behind, is rolled back and tried again. A mover that dies there frees the shard by that. Whatever
// else goes wrong, the move stays in the ledger, and the shard keeps working: [Resume] continues the move, and [Abort] takes
// it back, until the target takes writes. The map decides, and not the ledger, which may have lost its last steps in a failover of the source: a
// target that the map names serves, so its shard is not dropped, and the source gets its fence late. [AbortWithoutTarget] is for a target that
// is gone. Only in step fenced nobody serves; a mover that is alive leaves it within
// milliseconds, or as soon as the store answers.
//
// # The way back
//
// With [Config.RollbackFor] a slot on the target has what is written there after the switch. [Keep] applies it to the old schema,
// by package changes, since a subscription finds tables only by the names that they have on the publisher, and the old schema is to stay behind its fence. [Rollback] is
// a move from step copy on: it drains the slot under the fence of the host that the shard leaves, carries the sequences
// over, takes the fence of the old host down, and then changes the map. What is open needs somebody to look at it; the WAL that it
// may keep is limited, and past that it is closed.
//
// # The shard's lock
//
// The row in the source's ledger is written under the lock that migrations take, which only the owner of the shard can. From
// then on it keeps them out, also when the mover dies, until the move is resumed or aborted. It also says whose session works
// on the move, so that two resumes do not. The advisory lock of the shard, on both hosts, keeps out kiloshard exec; as anybody
// can take that one, it counts only where its holder may create in the shard's schema.
package move
