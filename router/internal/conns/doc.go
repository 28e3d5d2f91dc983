// Package conns manages the connections of one host: which one a request gets, the order of those that wait, and what is sent
// together.
//
// A Pool has as many lanes as the pool's config allows connections; pgxpool makes and ends those, and the Pool decides who
// uses them. A Shard is one shard on the host. What a caller wants is a Request: a connection, or the answer to one read.
// Attempts makes it, and knows whether it may be repeated.
//
// A read goes to one of the few lanes that reads share, always the same one for a shard, and waits in its queue if it is not
// free; anything else has a lane to itself (choose.go). A lane without a connection opens one, while its requests take
// whichever lane is free first (opening.go). Reads that wait are sent together (pipeline.go): those of one shard are a group. A
// read that is late is sent again on another lane (late.go). Package session sends and reads; package primary knows whether
// the host is up.
package conns
