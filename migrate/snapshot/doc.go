// Package snapshot takes new shards directly to a migration's version: it copies the structure of a migrated shard
// instead of running all migrations.
//
// [Take] compares shards by package drift, reads the structure that most of them have from one of them, the donor, and
// orders its statements by their dependencies. [Snapshot.Check] makes one new shard from it, compares that with the donor,
// and rolls back. If both succeed, [Apply] makes the new shards, or [Snapshot.Script] returns the SQL for each:
//
//	s, err := snapshot.Take(ctx, m, migrated...)
//	if err == nil {
//		err = s.Check(ctx, newShard)
//	}
//	if err != nil { … } // run the files
//	done, err := snapshot.Apply(ctx, snapshot.Config{Snapshot: s, Shards: newShards})
//
// A snapshot has no rows, values of sequences, owners, rights and tablespaces of its own; new shards get the defaults. [Snapshot.Check]
// returns a [BeyondError] if the donor has some, so take a donor that the files have just made: its rows are theirs.
//
// # Limits
//
// A snapshot cannot make objects for which package drift writes no statement: aggregates, operators and the like. It also
// cannot make typed tables, foreign tables, invalid indexes, and tables with a partition, child or parent in another schema. Take returns
// [UnknownError] then.
package snapshot
