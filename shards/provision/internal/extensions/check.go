package extensions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
)

// Check returns an error for each extension that has another schema or version than the map says, or that the server
// cannot create. It changes nothing.
func (in Installed) Check(ctx context.Context, conn *pgx.Conn, m *shards.Map) error {
	var errs []error
	for _, e := range m.Extensions() {
		if have, ok := in[e.Name]; ok {
			if found, want := have.compare(m, e); found != "" {
				errs = append(errs, fmt.Errorf("extension %s: %s; expected %s", e.Name, found, want))
			}
		}
	}
	names := Names(m)
	for _, e := range in.Missing(m) {
		reason, err := unavailable(ctx, conn, e, names[:slices.Index(names, e.Name)])
		if err != nil {
			return err
		}
		if reason != "" {
			errs = append(errs, fmt.Errorf("extension %s: %s", e.Name, reason))
		}
	}
	return errors.Join(errs...)
}

// unavailable returns why a server cannot create an extension, according to its files; empty if it can. The extensions
// in before are created first.
func unavailable(ctx context.Context, conn *pgx.Conn, e shards.Extension, before []string) (string, error) {
	const query = `
		WITH available AS (SELECT * FROM pg_available_extension_versions WHERE name = $1),
			wanted (version) AS (SELECT coalesce(nullif($2, ''), (SELECT default_version FROM pg_available_extensions WHERE name = $1), ''))
		SELECT ARRAY(SELECT version FROM available), wanted.version,
			coalesce((SELECT a.schema::text FROM available a WHERE a.schema IS NOT NULL LIMIT 1), ''),
			ARRAY(SELECT unnest(a.requires)::text FROM available a WHERE a.version = wanted.version
				EXCEPT SELECT extname::text FROM pg_extension EXCEPT SELECT unnest($3::text[]) ORDER BY 1)
		FROM wanted`
	var versions, required []string
	var version, schema string
	if err := conn.QueryRow(ctx, query, e.Name, e.Version, before).Scan(&versions, &version, &schema, &required); err != nil {
		return "", err
	}
	switch {
	case len(versions) == 0:
		return "the server has no files of it: expected the operating system's package with it, " +
			"such as postgresql-contrib for those of Postgres itself", nil
	case !slices.Contains(versions, version):
		return fmt.Sprintf("the server has no version %s of it: expected one of %s", version, strings.Join(versions, ", ")), nil
	case schema != "" && schema != e.Schema:
		return fmt.Sprintf("it can only be in schema %s: expected {name: %s, schema: %[1]s} in the config", schema, e.Name), nil
	case len(required) > 0:
		return fmt.Sprintf("it needs %s: expected that before it in extensions of the config", strings.Join(required, ", ")), nil
	}
	return "", nil
}

// Compare adds the extensions that differ from the map, and those that are in a shard. If the map names no version of
// an extension, all hosts should have the version of the first host with it.
func (in Installed) Compare(l *difference.List, m *shards.Map, hosts []Installed) {
	for _, e := range m.Extensions() {
		have, ok := in[e.Name]
		if !ok {
			l.Add(difference.Extension, e.Schema, "extension "+e.Name+" is missing", "the extension; kiloshard create makes it")
			continue
		}
		e.Version = cmp.Or(e.Version, firstVersion(hosts, e.Name))
		if found, want := have.compare(m, e); found != "" {
			l.Add(difference.Extension, have.schema, "extension "+e.Name+": "+found, want)
		}
	}
	names := Names(m)
	for name, have := range in {
		if _, inShard := m.NumberOf(have.schema); inShard && !slices.Contains(names, name) {
			found, want := have.compare(m, shards.Extension{Name: name, Schema: "public"})
			l.Add(difference.Extension, have.schema, "extension "+name+": "+found, want)
		}
	}
}

func firstVersion(hosts []Installed, name string) string {
	for _, in := range hosts {
		if have, ok := in[name]; ok {
			return have.version
		}
	}
	return ""
}

// compare returns how an installed extension differs from the map's, and how to correct that; empty if it does not
// differ.
func (have extension) compare(m *shards.Map, e shards.Extension) (found, want string) {
	_, inShard := m.NumberOf(have.schema)
	switch {
	case inShard:
		return "it is in shard " + have.schema + ", which cannot move",
			fmt.Sprintf("schema %s: run ALTER EXTENSION %s SET SCHEMA %s there", e.Schema, identifier(e.Name), identifier(e.Schema))
	case have.schema != e.Schema:
		return "it is in schema " + have.schema,
			fmt.Sprintf("schema %s: run ALTER EXTENSION %s SET SCHEMA %s there, or put {name: %[4]s, schema: %[5]s} into extensions of the config",
				e.Schema, identifier(e.Name), identifier(e.Schema), e.Name, have.schema)
	case e.Version != "" && have.version != e.Version:
		return "it is of version " + have.version,
			fmt.Sprintf("version %s: run ALTER EXTENSION %s UPDATE TO '%[1]s' there, or put version: %[3]q into the config",
				e.Version, identifier(e.Name), have.version)
	}
	return "", ""
}

// identifier returns a name for a statement in a message, with quotes only if it needs them.
func identifier(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return quoted(name)
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
