// Package conns is the connections of one host: which of them a call gets, who waits for what, and what is sent together.
//
// A Pool has a place for as many connections as the pool's config allows; pgxpool makes and ends them, and the Pool decides
// whose they are. A Shard is one shard on the host, with the connections that have worked for it before. What a caller wants
// is a Request: a connection for itself, or the answer to one read. It is made by Attempts, which know how it went before and
// whether it may be made again.
//
// A request goes to a connection of its shard that is free, or waits in the queue of one that is not (choose.go). What waits
// together is sent together (pipeline.go): the reads of one shard are a group. What is late is asked for again, elsewhere
// (late.go). Package session sends and reads; package primary knows whether the host is up.
package conns
