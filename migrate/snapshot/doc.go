// Package snapshot brings new shards from nothing to a migration's version at once, by the structure of a shard that
// has been through the migrations, instead of running all their files again.
//
// [Take] compares shards by package drift, reads the structure that most of them have from one, the donor, and puts its
// statements into an order in which each finds what it needs. [Snapshot.Check] makes one new shard of it, compares that with the donor, and takes it back. When both are
// content, [Snapshot.Script] gives for each new shard one text to be run, or [Apply] runs them:
//
//	s, err := snapshot.Take(ctx, m, migrated...)
//	if err == nil {
//		err = s.Check(ctx, newShard)
//	}
//	if err != nil { … } // run the files
//	done, err := snapshot.Apply(ctx, snapshot.Config{Snapshot: s, Shards: newShards})
//
// A snapshot holds no rows. Migrations that insert any, or that may, must be run; which do, only their files tell. Nor
// does it hold owners and privileges, which new shards have by default.
//
// # Limits
//
// What package drift writes no statement for, a snapshot cannot make: aggregates, operators and the like. Nor does it
// make partitioned tables, heirs and foreign tables, or an index that is invalid. Take returns [UnknownError] then.
package snapshot
