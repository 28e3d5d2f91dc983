// Package conns is the connections of one host: which of them a request gets, who waits for what, and what is sent together.
//
// A Pool has as many lanes as the pool's config allows connections; pgxpool makes and ends those, and the Pool decides who
// uses them. A Shard is one shard on the host, with the connections that have worked for it before. What a caller wants
// is a Request: a connection, or the answer to one read. Attempts makes it, and knows whether it may be repeated.
//
// A request goes to a connection of its shard that is free, or waits in the queue of one that is not (choose.go). What waits
// together is sent together (pipeline.go): the reads of one shard are a group. What is late is sent again, elsewhere
// (late.go). Package session sends and reads; package primary knows whether the host is up.
package conns
