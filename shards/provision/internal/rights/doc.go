// Package rights reads the rights that roles have on shards. A host stores them nowhere but in its grants: the rights
// that a role has on most shards are those that it should have on all.
package rights
