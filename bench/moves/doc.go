// Package moves measures what services notice while a shard moves to another host and back, and how long a move takes beside
// a bare copy of the same tables by Postgres's logical replication.
package moves
