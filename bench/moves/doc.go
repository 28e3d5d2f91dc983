// Package moves measures what services notice while a shard moves to another host and back, and compares the duration of a
// move with a copy of the same tables by Postgres's logical replication alone.
package moves
