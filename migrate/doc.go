// Package migrate runs tern's migration files in every shard.
//
// # Files
//
// A directory of migrations is tern's: 001_users.sql, 002_photos.sql and so on,
// rendered as Go templates, with an up part and perhaps a down part. {{.schema}} and {{.shard}}
// are the schema and the number of the shard. Names without a schema mean the shard's own tables,
// since each file is run with the search_path of [shards.Map.SearchPath].
//
// Each shard's schema_version table, made as tern makes it, is the truth about what was run there.
// The tern program can be pointed at one shard, with schema_version in its schema as the version
// table and its schema as the search_path, and agrees with this package.
//
// Sessions are opened as package connect has it: by the DSNs of the map, and with the credentials of
// [shards.Map.WithCredentials].
//
// # What Up does
//
//  1. It reads the directory once, checks it, and renders it for one shard. When anything is wrong
//     it says so, and has asked no host.
//  2. It asks every host at once, by one message each, at which versions its shards stand. When a host
//     does not answer, a schema does not exist, or a version is above the newest file's, nothing is
//     run anywhere. When nothing is pending, that was all.
//  3. It checks the files that are pending: one that begins or ends a transaction, that copies from standard
//     input, or that is marked "tern: disable-tx" and cannot be taken apart into statements is refused, and
//     nothing is run anywhere.
//  4. On each host one session takes tern's own advisory lock in shared mode and holds it to the end, so
//     that a tern program run by hand waits until the run is over, and other runs of this package do
//     not. When a tern program is at work already, and does not come to an end within Config.TernWait,
//     nothing is run. The session also makes the ledger where it is missing.
//  5. First it goes through Config.Canary shards, and asks Config.Check; then through the hosts,
//     Config.Wave at a time, with Config.PerHost sessions to each.
//  6. It takes shard after shard: all files that are pending there go to the server as one message, save for
//     those that are marked "tern: disable-tx"; see below.
//     Each file has a transaction of its own, which locks the shard against other runs, checks that
//     the shard still stands at the version before the file's, runs the file, records its version,
//     and enters it into the ledger. When another run was there first, it looks again where the shard
//     stands. When a lock on a table is not free within Config.LockTimeout, it tries again a little
//     later, so that nobody has to wait behind it for long.
//  7. In the end each host puts on disk what was committed there, once.
//
// [Run] goes either way, as its config says. [Down] does the same with the down parts of the files, the newest first.
// [Force] sets versions and runs nothing.
//
// # Files outside of a transaction
//
// A file that has the line
//
//	---- tern: disable-tx ----
//
// in its up part, or in its down part, is run without a transaction around it in that direction, for the sake of
// statements such as CREATE INDEX CONCURRENTLY. Each of its statements is run by itself, with the shard's
// search_path. The shard's lock is held meanwhile, and no other run of this package waits for it in a statement,
// since the snapshot of one would in turn be waited for by CREATE INDEX CONCURRENTLY. For the same reason none
// is built while a tern program waits for the run to end: that is [ErrTernAtWork].
//
// The ledger has an entry for each statement that is done. It is made together with what the statement does, or,
// where that cannot be a part of a transaction, right behind it. After the last one the version and the file's own
// entry are recorded in one transaction. When a statement fails, the shard stays at the version before, and the
// statements before it stay done: another run goes on with the one that failed. SET and RESET are run again then.
// When the part of the file that is run was changed meanwhile, it starts again. It does so too once another file was
// run in the shard, or its version was forced.
//
// Before a CREATE INDEX CONCURRENTLY is run, also with IF NOT EXISTS, an invalid index of its name in the table's
// schema is dropped, when nobody is building it; where the statement has no name for the index, the invalid indexes
// of the table with names such as Postgres makes (…_idx, …_idx1). Before a REINDEX … CONCURRENTLY of an index, a
// table or a schema those that an earlier one left (…_ccnew, …_ccold) are. Not found are indexes whose names are
// written as U&"…", those of partitions and of TOAST tables, and those of REINDEX DATABASE.
//
// # The ledger
//
// Each host has a table kiloshard.ledger: who ran which file in which shard and when, its checksum,
// how long it took, and how it failed. A file that was changed after a shard had run it is reported,
// by [Up], [Down] and [Status]; the shard keeps what it has.
//
// # What remains after a failure
//
// A file is in a shard wholly or not at all, and the version tells which; save for one that is run outside of a
// transaction, of which the first statements may be there before the version is, as the ledger tells. What the
// statement that failed did is undone too, except that those which cannot be a part of a transaction leave what
// the manual says, such as an invalid index. A server that crashes right behind such a statement may know nothing
// of its being done, and it is then run again: IF NOT EXISTS helps. A shard whose third file
// fails keeps the first two, and the other shards go on. When ctx ends, when a session dies or the
// program does, the shards under way are finished by the server or rolled back by it, and the others
// are untouched. Whatever happened, running Up again takes up what is left.
//
// A file that ends its own transaction in a way that step 3 does not see is the exception: see
// [ErrTransactionEnded].
//
// # Why commits need not wait for the disk
//
// The transactions of step 6 are committed with synchronous_commit off. That gives up nothing that
// this package relies on: the log is written in order, so a crash of the server loses the newest
// transactions, each one wholly, its file and its version together. The versions thus always tell
// the truth, and a run that had not ended is taken up from there. Before Up returns, also after an
// interrupt, step 7 commits a record with synchronous_commit on: since the log is in order, all
// that came before it is then on disk too. Where a host does not confirm this, its shards count as
// failed, with [ErrNotFlushed], and so do those that a host has forgotten which crashed during the run
// and came back.
//
// # Limits
//
// The sessions hold locks for as long as they last, so connect to Postgres itself, or by a pooler
// that pools sessions; not by one that pools transactions.
//
// To build an index concurrently is to wait for every transaction in the database that is older; one that is left
// open holds it up. Config.LockTimeout does not end that, Config.StatementTimeout does.
//
// Shards of a host are migrated at the same time. A file that touches something that they share,
// such as an extension or a role, may find another shard doing the same: give it to
// kiloshard create instead, or run with Config.PerHost 1.
package migrate
