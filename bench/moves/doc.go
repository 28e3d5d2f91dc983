// Package moves is kiloshard-lab bench move: what services notice while shards move to other hosts, and how long a move
// takes beside a copy of the same tables by Postgres's logical replication alone.
package moves
