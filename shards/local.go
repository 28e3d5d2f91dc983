package shards

import (
	"maps"
	"os"
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

// Passfile returns the password file that the DSN of the primary names, empty if it names none.
func (h Host) Passfile() string {
	d, _ := dsn.Parse(h.ConnString())
	return d.Get("passfile")
}

// WithPassfile returns the host with another password file.
func (h Host) WithPassfile(file string) Host {
	h.local = maps.Clone(h.local)
	if h.local == nil {
		h.local = map[string]string{}
	}
	h.local["passfile"] = file
	return h
}

// IsShared reports whether the host came from a store that others may write to: see [Store.Variables].
func (h Host) IsShared() bool { return h.shared }

// LocalService returns a host that connects only by the service that this machine names, in [Store.Local] or in PGSERVICE.
// It returns false for a host that is not from a store: its DSN may name any service.
func (h Host) LocalService() (Host, bool) {
	local := map[string]string{"passfile": os.DevNull}
	for _, key := range []string{"service", "servicefile"} {
		if value, ok := h.local[key]; ok {
			local[key] = value
		}
	}
	return Host{Name: h.Name, DSN: " ", dir: h.dir, local: local}, h.shared
}
