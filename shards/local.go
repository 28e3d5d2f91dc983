package shards

import (
	"maps"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// LocalKeys are the settings that [Store.Local] may have. A DSN from a store may have none of them but sslmode: they name
// files of this machine, or say what a server may ask for.
var LocalKeys = []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "passfile", "service", "servicefile", "require_auth"}

// local reads settings for DSNs.
func (d *document) local(to *map[string]string) read {
	return func(at string, node ast.Node) error {
		values := make([]string, len(LocalKeys))
		fields := make([]field, len(LocalKeys))
		for i, key := range LocalKeys {
			fields[i] = field{key, d.text(&values[i], "what "+key+" is in a DSN")}
		}
		if err := d.mapping(fields...)(at, node); err != nil {
			return err
		}
		*to = map[string]string{}
		for i, key := range LocalKeys {
			if values[i] != "" {
				(*to)[key] = values[i]
			}
		}
		return nil
	}
}

// withLocal returns a DSN with settings that override its own.
func withLocal(text string, local map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(local)) {
		pairs = append(pairs, key, local[key])
	}
	return dsn.With(text, pairs...)
}
