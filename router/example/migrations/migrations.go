// Package migrations holds the tables of the photo service, which every shard has.
package migrations

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
)

// Files are tern's, for kiloshard migrate and for tests.
//
//go:embed *.sql
var Files embed.FS

// For returns [Files] for a service with another number of StoreShards than 64. They are read by [fs.ReadFile].
func For(storeShards int) fs.FS { return forShards{Files, storeShards} }

type forShards struct {
	embed.FS
	number int
}

// ReadFile returns a file with the other number.
func (f forShards) ReadFile(name string) ([]byte, error) {
	text, err := f.FS.ReadFile(name)
	return bytes.ReplaceAll(text, []byte("key_of_64"), fmt.Append(nil, "key_of_", f.number)), err
}
