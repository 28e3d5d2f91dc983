// Package many works on many shards at once.
//
//	Collect         all rows of a set of shards; CollectByShard keeps them apart
//	Merge           the first rows of all in one order, such as the 20 newest
//	GetMany         rows by their IDs, from whichever shards made them
//	Stream          rows as they come, however many there are
//	Each            anything else; EachKey and EachID for the shards of keys and IDs
//
// The set is a [shards.Set], such as [router.Router.All], [OfKeys] or [OfIDs]. All hosts are worked on at the same time.
// Each and Stream hold a connection for each shard that they are at, so they are at few shards of a host at a time; the
// others send their statements to all shards of a host at once, and the router sends those together that wait for a
// connection.
//
// One shard that fails does not end the work, unless [Options] say so. The error is then a [shards.PartialError], which
// says of every shard whether it is done, has failed, or was not attempted, and comes with the rows of those that are
// done. A host that cannot be reached costs one attempt: its other shards are not attempted.
//
// There is no transaction over several shards. Each shard is read at its own time: rows that two shards return may never
// have been there together.
package many
