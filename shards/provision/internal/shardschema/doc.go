// Package shardschema has the schema of one shard: the functions and the sequence that make its IDs.
package shardschema
