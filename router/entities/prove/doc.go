// Package prove checks the protocol of package entities: it runs every interleaving of three writers and a cleaner that write two
// entities, a unique index and another index. Each program may stop for good, or for as long as others need, between any
// two of its steps. A step is one transaction in one shard.
//
// After each step an entity has the row of its value in the unique index, and in the other index unless work for it waits. When
// all writers and the cleaner have ended, indexes and entities agree.
//
// The model is small on purpose: two values, a few versions, at most one retry of a writer. Its tests remove one safeguard at a
// time, and each removal must lead to a violation; a test prints the shortest sequence of steps that does. The model checks
// the argument, not the SQL: the tests of package entities do that. make prove runs the larger scenarios in full, make test in part.
//
// TestTorture runs the package on servers: processes of writers and cleaners are killed, shards move, a clock steps, and hosts
// fail over to standbys that lack their last writes. make prove takes ten minutes for it.
package prove
