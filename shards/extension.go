package shards

import (
	"fmt"
	"regexp"
	"slices"
)

// Extension is an extension of Postgres that each host has, outside the shards' schemas, such as citext.
type Extension struct {
	Name    string `json:"name" yaml:"name,short"`
	Schema  string `json:"schema" yaml:"schema"`             // defaults to public
	Version string `json:"version,omitempty" yaml:"version"` // defaults to what a host has, and for a new one to the newest there
}

var extensionPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$`)

const expectedExtension = `the name of an extension, such as citext, or {name: citext, schema: extensions, version: "1.6"}`

// Extensions returns the extensions that each host has. The caller must not change the slice.
func (m *Map) Extensions() []Extension { return m.config.Extensions }

// checkExtensions refuses the schemas of shards, which leave their host, and Kiloshard's own.
func checkExtensions(c Config) error {
	for i, e := range c.Extensions {
		field := fmt.Sprintf("extensions[%d]", i)
		if !extensionPattern.MatchString(e.Name) {
			return &FieldError{Field: field, Found: quoted(e.Name), Expected: expectedExtension}
		}
		if slices.ContainsFunc(c.Extensions[:i], func(o Extension) bool { return o.Name == e.Name }) {
			return &FieldError{Field: field, Found: quoted(e.Name) + " a second time", Expected: "each extension once"}
		}
		if e.Schema != "pg_catalog" && !c.isServices(e.Schema) {
			return &FieldError{Field: field + ".schema", Found: quoted(e.Schema), Expected: "the name of a schema that is neither a shard's nor Kiloshard's"}
		}
		if len(e.Version) > 63 {
			return &FieldError{Field: field + ".version", Found: quoted(e.Version), Expected: expectedVersion}
		}
	}
	return nil
}

// extraSchemas returns those behind the shard's own in the search_path: of the config, and of its extensions. Without an
// extension's schema its operators are not found, and others may be taken instead: citext would compare as text does.
func (c Config) extraSchemas() []string {
	extra := slices.Clone(c.SearchPath)
	for _, e := range c.Extensions {
		if e.Schema != "pg_catalog" && !slices.Contains(extra, e.Schema) { // which always comes first
			extra = append(extra, e.Schema)
		}
	}
	return extra
}
