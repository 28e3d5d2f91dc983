// Package move moves shards from one host to another while services write to them.
//
// It takes no extension and no proxy: the mover copies a shard, Postgres's logical replication streams the writes made during the copy, and a
// cutover of some milliseconds changes the shard's host. [Run] takes each shard through these steps; the ledger has each before it begins:
//
//  1. prepare: the mover makes all checks, and the ledgers of both hosts get a row.
//  2. schema: the target gets the shard as it is on the source, without rows, and without keys and indexes that nothing else of it
//     needs: tables, functions, sequences, owners and grants. The structures are compared. Until the switch the copy is a fence to routers,
//     its next_id fails, and a trigger on each table refuses writes.
//  3. publish: the source gets a publication of the shard's tables.
//  4. copy: the source gets a slot, and the mover copies the rows as of where the slot begins, and makes the other keys and indexes. The target
//     gets a subscription, which applies later writes. Once it keeps up, the target gets statistics and the rows of materialised
//     views, while the mover compares rows.
//  5. cutover: one transaction on the source locks the shard's tables and sequences. Another session writes a marker row;
//     once the target shows it, the target has all earlier writes. The mover copies what is not replicated: unlogged tables
//     and large objects. It compares rows, gives the shard another name, with the fence in its place, and carries the
//     sequences over.
//  6. fenced: the mover checks by the catalogs that the schema behind the fence is the one it compared; if a person has changed it, the fence
//     comes down, and the cutover begins again. A compare-and-swap changes the map. From then on the target serves.
//  7. switched: subscription, slot and publication are dropped. The old schema stays on the source until [Clean].
//
// [Promote] moves half of a host's shards at once, without a copy, to a physical standby of it, which it promotes.
//
// # What a caller meets
//
// A statement that arrives during the cutover waits for the mover's locks and then meets the fence: views and functions with the shard's names that
// raise SQLSTATE KSM01 and name the new host, for every role and setting. TRUNCATE, COPY TO, a COPY without a list of columns,
// ON CONFLICT ON CONSTRAINT, MERGE before Postgres 17, and calls of functions with default arguments or with types of the shard fail with Postgres's own errors.
// Sequences behind the fence are exhausted. The router reloads the map when it sees KSM01, or when its entry finds a fence, and resends the
// statement to the new host. Other clients see the error.
//
// # What remains after a failure
//
// If a cutover cannot get its locks, or the target lags, the mover rolls back and retries. If the mover dies during the cutover, its locks end with its session.
// After any other error the move stays in the ledger and the shard keeps serving: [Resume] continues the move, and [Abort] takes
// it back, until the target takes writes. The map decides, and not the ledger, which may have lost its last steps in a failover of the source: a
// target that the map names serves, so its shard is not dropped, and the source gets its fence late. [AbortWithoutTarget] is for a target that
// is gone. No host serves the shard during step fenced, which lasts milliseconds, or until the map store answers.
//
// # The way back
//
// With [RunConfig.RollbackFor] a slot on the target keeps the writes made there after the switch. [Keep] applies them to the old schema. [Rollback] is
// a move from step copy on: it drains the slot under the fence of the host that the shard leaves, carries the sequences
// over, takes the fence of the old host down, and then changes the map. An operator watches an open way back; the WAL that it
// may keep is limited, and past that it is closed.
//
// # The packages below
//
// A move is a job, which goes from step to step, and uses these packages; none of them knows the job. schedule runs several jobs at a time, and rooms makes them wait
// for slots. Package claim keeps the shard for this mover. locks takes the locks of a cutover, retry decides whether that is tried again, fence makes a host refuse.
// structure makes the shard on the target, rows and large copy and compare what is in it, replicate streams later writes, and wayback those after the switch. placing
// changes the map. cleanup drops what moves leave behind. checks finds problems before all that, and promote has the moves of a split by promotion.
package move
