// Package adopt is kiloshard-lab bench adopt: what clients notice while the database of a service becomes shards, gate by gate, how long
// that takes beside pg_dump and psql, and what views and mirrors cost a statement. Histories of the clients and comparisons of the
// tables show whether a row was lost, doubled, changed, or is in a wrong shard.
package adopt
