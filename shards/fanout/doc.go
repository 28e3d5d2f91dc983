// Package fanout does one thing to many shards: in parallel within limits, with progress, stopping
// cleanly when it is interrupted, and saying exactly what was done and what was not.
//
// [Run] first opens one session to every host that has work. When a host does not answer, nothing
// is begun anywhere. Then each host's shards are handed out in batches to up to [Config.PerHost]
// workers, each with a session of its own.
//
// When the context ends, no new batch is handed out, and the batches under way are finished: their
// context lives on for [Config.Grace]. So an interrupted run leaves no shard half way.
package fanout
