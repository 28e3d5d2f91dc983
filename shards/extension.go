package shards

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// Extension is an extension of Postgres that each host has, outside the shards' schemas, such as citext.
type Extension struct {
	Name    string `json:"name"`
	Schema  string `json:"schema"`            // defaults to public
	Version string `json:"version,omitempty"` // defaults to what a host has, and for a new one to the newest there
}

var extensionPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$`)

const expectedExtension = `the name of an extension, such as citext, or {name: citext, schema: extensions, version: "1.6"}`

// Extensions returns the extensions that each host has. The caller must not change the slice.
func (m *Map) Extensions() []Extension { return m.config.Extensions }

// extension reads a name, or a mapping.
func (d *document) extension(e *Extension) read {
	name := d.text(&e.Name, expectedExtension)
	whole := d.mapping(
		field{"name", name},
		field{"schema", d.text(&e.Schema, "the name of a schema")},
		field{"version", d.text(&e.Version, `a version, such as "1.6"`)},
	)
	return func(at string, node ast.Node) error {
		switch node.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			return whole(at, node)
		}
		return name(at, node)
	}
}

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
			return &FieldError{Field: field + ".version", Found: quoted(e.Version), Expected: `a version, such as "1.6"`}
		}
	}
	return nil
}

// writeExtension writes only the name if the rest is the default.
func writeExtension(e Extension) string {
	if e.Schema == "public" && e.Version == "" {
		return plain(e.Name)
	}
	text := fmt.Sprintf("{name: %s, schema: %s", plain(e.Name), plain(e.Schema))
	if e.Version != "" {
		text += fmt.Sprintf(", version: %q", e.Version)
	}
	return text + "}"
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
