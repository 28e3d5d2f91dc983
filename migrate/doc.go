// Package migrate runs tern's migration files in every shard.
//
// # Files
//
// A directory of migrations is what tern takes it for: 001_users.sql, 002_photos.sql and so on,
// rendered as Go templates, with an up part and perhaps a down part. {{.schema}} and {{.shard}}
// are the schema and the number of the shard. Names without a schema mean the shard's own tables,
// since each file is run with the search_path of [shards.Map.SearchPath].
//
// Each shard's schema_version table, made as tern makes it, is the truth about what was run there.
// The tern program can be pointed at one shard, with schema_version in its schema as the version
// table and its schema as the search_path, and agrees with this package.
//
// # What Up does
//
//  1. It reads the directory once, checks it, and renders it for one shard. When anything is wrong
//     it says so, and has asked no host.
//  2. It asks every host at once, by one query each, at which versions its shards stand. When a host
//     does not answer, a schema does not exist, or a version is above the newest file's, nothing is
//     run anywhere. When nothing is pending, that was all.
//  3. It checks the files that are pending: one that is marked "tern: disable-tx", that begins or
//     ends a transaction, or that copies from standard input is refused, and nothing is run anywhere.
//  4. To each host it opens sessions, as many as Config.PerHost. Each holds tern's own advisory lock
//     in shared mode, so that a tern program run by hand waits until the run is over, and other runs
//     of this package do not. When a tern program is at work already, and does not come to an end
//     within Config.TernWait, nothing is run.
//  5. It takes shard after shard: all files that are pending there go to the server as one message.
//     Each file has a transaction of its own, which locks the shard against other runs, checks that
//     the shard still stands at the version before the file's, runs the file, and records its
//     version. When another run was there first, it looks again where the shard stands.
//  6. In the end each host puts on disk what was committed there, once.
//
// # What remains after a failure
//
// A file is in a shard wholly or not at all, and the version tells which. A shard whose third file
// fails keeps the first two, and the other shards go on. When ctx ends, when a session dies or the
// program does, the shards under way are finished by the server or rolled back by it, and the others
// are untouched. Whatever happened, running Up again takes up what is left.
//
// A file that ends its own transaction in a way that step 3 does not see is the exception: see
// [ErrTransactionEnded].
//
// # Why commits need not wait for the disk
//
// The transactions of step 5 are committed with synchronous_commit off. That gives up nothing that
// this package relies on: the log is written in order, so a crash of the server loses the newest
// transactions, each one wholly, its file and its version together. The versions thus always tell
// the truth, and a run that had not ended is taken up from there. Before Up returns, also after an
// interrupt, step 6 commits a record with synchronous_commit on: since the log is in order, all
// that came before it is then on disk too. Where a host does not confirm this, its shards count as
// failed, with [ErrNotFlushed].
//
// # Limits
//
// The sessions hold locks for as long as they last, so connect to Postgres itself, or by a pooler
// that pools sessions; not by one that pools transactions.
//
// Shards of a host are migrated at the same time. A file that touches something that they share,
// such as an extension or a role, may find another shard doing the same: give it to
// kiloshard create instead, or run with Config.PerHost 1.
package migrate
