// Package many works on many shards at once.
//
//	Collect         all rows of a set of shards; CollectByShard keeps them apart
//	Merge           the first rows of all in one order, such as the 20 newest
//	GetMany         rows by their IDs, from whichever shards made them
//	Stream          rows as they come, however many there are
//	Each            anything else; EachKey and EachID for the shards of keys and IDs
//
// The set is a [shards.Set], such as [router.Router.All], [OfKeys] or [OfIDs]. All hosts work at the same time. Each and
// Stream hold a connection for each shard they work on, so they work on a few shards of a host at a time. The others send
// their statements to all shards of a host at once, and the router sends statements that wait for a connection together.
//
// A shard that fails does not stop the others, unless [Options] say so. The error is then a [shards.PartialError]: it
// lists the shards that are done, failed, or were not attempted, and comes with the rows of those that are done. A host
// that is unreachable costs one attempt: its other shards are not attempted.
//
// A panic in what the caller gives, such as Scan, stops the work, and goes on in the caller's goroutine once no other runs.
//
// There is no transaction over several shards. Each shard is read at its own time, so the rows of two shards may never
// have existed at the same moment.
package many
