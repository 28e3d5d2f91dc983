// Package fanout runs a function on many shards: in parallel within limits, with progress. It stops
// cleanly when it is interrupted, and reports exactly which shards are done.
//
// [Run] first opens one session to every host that has work. If a host does not answer, it starts
// no work anywhere. Then up to [Config.PerHost] workers of each host, each with its own session,
// take batches of that host's shards.
//
// When the context ends, workers take no new batch, and finish the batches under way: their
// context lasts for another [Config.Grace]. So an interrupted run leaves no shard half done.
package fanout
