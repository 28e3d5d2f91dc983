// Package session is one Postgres session on which statements of many shards run, each under its own shard's search_path.
//
// Before every statement, in the same transaction, stands the entry (entry.go): it checks that the shard is there and sets
// the path local to the transaction, so that nothing of it is left behind. A Session also keeps prepared statements, by path
// and text, takes off what callers leave behind, and knows three ways to send: statements that stand by themselves, a
// transaction (tx.go), and groups of reads (reads.go).
//
// A Session has no lock: only the holder of its connection may use it. It knows nothing of other sessions: package conns decides
// which one a request uses, and when it is sent again.
package session
