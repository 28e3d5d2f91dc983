// Package hosts works on several hosts at once: one session to each, an error for each host that fails, locks against
// other programs that create shards, and a check that no two hosts are the same database.
package hosts
