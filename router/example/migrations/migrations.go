// Package migrations holds the tables of the photo service, which every shard has.
package migrations

import "embed"

// Files are tern's, for kiloshard migrate and for tests.
//
//go:embed *.sql
var Files embed.FS
