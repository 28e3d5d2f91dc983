// Package migrate runs tern's migration files in every shard.
//
// # Files
//
// A directory of migrations is tern's: 001_users.sql, 002_photos.sql and so on,
// rendered as Go templates, with an up part and perhaps a down part. {{.schema}} and {{.shard}}
// are the schema and the number of the shard. Names without a schema mean the shard's own tables,
// since each file runs with the search_path of [shards.Map.SearchPath].
//
// Each shard's schema_version table, which is tern's, says which files ran there. The tern program works on one shard
// too, with schema_version in the shard's schema as the version table and that schema as the search_path, and agrees
// with this package.
//
// Package connect opens the sessions, by the DSNs of the map and with the credentials of [shards.Map.WithCredentials].
//
// # What Up does
//
//  1. It reads the directory once, checks it, and renders it for one shard. It reports errors before it contacts a host.
//  2. It asks all hosts at once, by one message each, for the versions of their shards. If a host does not answer, a
//     schema does not exist, or a version is above the newest file's, it runs nothing on any host. If nothing is
//     pending, it returns.
//  3. It checks the pending files. If one of them begins or ends a transaction, copies from standard input, or is marked
//     "tern: disable-tx" and cannot be split into statements, it runs nothing on any host.
//  4. On each host one session takes tern's advisory lock in shared mode and holds it to the end, so a tern program
//     waits until the run is over, and other runs of this package do not. If a tern program is running already and does
//     not end within Config.TernWait, Up runs nothing. The session also creates the ledger if it is missing.
//  5. It runs the files that begin with the line "-- kiloshard: once a host" on each host that has not run them, also on
//     hosts without shards if the run is for all shards. Such a file may change only [shards.Map.SharedSchemas]. The
//     shards only check that their host has run it.
//  6. It migrates Config.Canary shards and calls Config.Check, then migrates the hosts, Config.Wave at a time, with
//     Config.PerHost sessions to each.
//  7. It sends all pending files of a shard to the server as one message, except those marked "tern: disable-tx"; see
//     below. Each file has a transaction of its own, which locks the shard against other runs, checks that the shard is
//     still at the version before the file's, runs the file, and records it in the version table and in the ledger. If
//     another run was first, Up reads the shard's version again. If a lock on a table is not free within
//     Config.LockTimeout, it retries a little later, so nobody has to wait behind it for long. It also runs a file again that
//     collided with others by chance: in a deadlock, or because both wrote the same row of a catalog, as two GRANTs on one
//     schema do. A file that runs outside a transaction is not run again after that.
//  8. At the end each host flushes its commits to disk, once.
//
// [Run] goes up or down, as its config says. [Down] does the same with the down parts of the files, the newest first.
// [Force] sets versions and runs no file.
//
// # Files outside a transaction
//
// A file that has the line
//
//	---- tern: disable-tx ----
//
// in its up part runs without a transaction in both directions; with the line only in its down part, it does so on the way
// down. This is for statements such as CREATE INDEX CONCURRENTLY. Each statement runs by itself, with the shard's
// search_path and under the shard's lock. Other runs of this package poll for that lock: a statement that waits for it
// would hold a snapshot, and CREATE INDEX CONCURRENTLY would wait for the snapshot. For the same reason such a file fails
// with [ErrTernAtWork] while a tern program waits for the run to end.
//
// The ledger has an entry for each statement that is done. The entry commits together with the statement, or right after
// it if the statement cannot be part of a transaction. After the last statement, one transaction records the version and
// the file's own entry. If a statement fails, the shard stays at the version before, and the statements before it stay
// done: the next run continues with the failed one. It runs SET and RESET again. It starts the file again if that part
// of the file has changed, if another file ran in the shard, or if the shard's version was forced.
//
// CREATE INDEX CONCURRENTLY, also with IF NOT EXISTS, first drops an invalid index of its name in the table's schema
// once nobody builds it; if the statement does not name the index, it drops the table's invalid indexes with names that
// Postgres chooses (…_idx, …_idx1). REINDEX … CONCURRENTLY of an index, a table or a schema first drops the invalid
// indexes that an earlier one left (…_ccnew, …_ccold). It does not find indexes whose names are written as U&"…", those
// of partitions and of TOAST tables, and those of REINDEX DATABASE.
//
// # The ledger
//
// Each host has a table kiloshard.ledger: who ran which file in which shard and when, its checksum,
// how long it took, and how it failed. [Up], [Down] and [Status] report a file that was changed after a
// shard ran it; the shard stays as it is.
//
// # What remains after a failure
//
// A file is applied to a shard entirely or not at all, and the shard's version says which. A file that runs outside a
// transaction can be applied in part; the ledger says how far. A failed statement is undone, except that one which cannot
// be part of a transaction leaves what the manual says, such as an invalid index. If a server crashes right after such a
// statement, its entry may be lost and the next run repeats the statement: IF NOT EXISTS helps. A shard whose third file
// fails keeps the first two, and the other shards go on. If ctx ends, a session breaks or the program ends, the server
// finishes the shards under way or rolls them back, and the others are untouched. In all cases, run Up again to
// migrate the rest.
//
// The exception is a file that ends its own transaction in a way that step 3 does not detect: see
// [ErrTransactionEnded].
//
// # Why commits need not wait for the disk
//
// The transactions of step 7 commit with synchronous_commit off. This is safe: the server writes its log in order, so a
// crash loses only the newest transactions, each as a whole, with its file and its version. So the versions stay correct,
// and the next run continues from them. Before Up returns, even after an interrupt, step 8 commits a record with
// synchronous_commit on: since the log is in order, all earlier commits are on disk then. If a host does not confirm
// this, its shards count as failed, with [ErrNotFlushed]; so do shards whose migration a host lost by a crash during the
// run.
//
// # Limits
//
// The sessions hold session locks, so connect to Postgres directly or by a pooler that pools sessions, not transactions.
//
// CREATE INDEX CONCURRENTLY waits for every older transaction in the database, so a transaction that is left open blocks
// it. Config.LockTimeout does not end that wait, Config.StatementTimeout does.
package migrate
