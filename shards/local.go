package shards

import (
	"maps"
	"slices"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// LocalKeys are the settings that [Store.Local] may have. A DSN from a store may have none of them but sslmode: they name
// files of this machine, or say what a server may ask for.
var LocalKeys = []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "passfile", "service", "servicefile", "require_auth"}

// withLocal returns a DSN with settings that override its own.
func withLocal(text string, local map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(local)) {
		pairs = append(pairs, key, local[key])
	}
	return dsn.With(text, pairs...)
}
