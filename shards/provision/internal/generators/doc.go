// Package generators has the generators of a map: which of them belong into the schema of a shard and which into the
// helper schema of a host, the scripts that create them, and how those that a host has differ.
package generators
