package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// extension is one that a host has.
type extension struct{ schema, version string }

// takeExtensions reads the extensions that the map names, and those in schemas with the names of shards.
func (inv *inventory) takeExtensions(ctx context.Context, conn *pgx.Conn, m *shards.Map, pattern string) error {
	inv.extensions = map[string]extension{}
	const query = `
		SELECT x.extname::text, n.nspname::text, x.extversion FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace
		WHERE x.extname = ANY ($1) OR n.nspname ~ $2`
	rows, err := conn.Query(ctx, query, extensionNames(m), pattern)
	if err != nil {
		return err
	}
	var name string
	var found extension
	_, err = pgx.ForEachRow(rows, []any{&name, &found.schema, &found.version}, func() error {
		inv.extensions[name] = found
		return nil
	})
	return err
}

func extensionNames(m *shards.Map) []string {
	names := make([]string, len(m.Extensions()))
	for i, e := range m.Extensions() {
		names[i] = e.Name
	}
	return names
}

// lacking returns the extensions of the map that a host does not have, in the map's order.
func (inv *inventory) lacking(m *shards.Map) []shards.Extension {
	return slices.DeleteFunc(slices.Clone(m.Extensions()), func(e shards.Extension) bool {
		_, ok := inv.extensions[e.Name]
		return ok
	})
}

// otherwise says how an extension that a host has differs from the map's, and what to do; empty if it does not.
func (have extension) otherwise(m *shards.Map, e shards.Extension) (found, want string) {
	_, inShard := m.NumberOf(have.schema)
	switch {
	case inShard:
		return "it is in shard " + have.schema + ", which cannot move", fmt.Sprintf("schema %s: run ALTER EXTENSION %s SET SCHEMA %s there", e.Schema, shown(e.Name), shown(e.Schema))
	case have.schema != e.Schema:
		return "it is in schema " + have.schema, fmt.Sprintf("schema %s: run ALTER EXTENSION %s SET SCHEMA %s there, or put {name: %[4]s, schema: %[5]s} into extensions of the config",
			e.Schema, shown(e.Name), shown(e.Schema), e.Name, have.schema)
	case e.Version != "" && have.version != e.Version:
		return "it is of version " + have.version, fmt.Sprintf("version %s: run ALTER EXTENSION %s UPDATE TO '%[1]s' there, or put version: %[3]q into the config", e.Version, shown(e.Name), have.version)
	}
	return "", ""
}

// checkExtensions returns an error for each extension that a host has otherwise than the map says, or cannot have.
func (s *sessions) checkExtensions(ctx context.Context, m *shards.Map, inventories []*inventory) error {
	if len(m.Extensions()) == 0 {
		return nil
	}
	return s.each(func(i int, conn *pgx.Conn) error { return inventories[i].checkExtensions(ctx, conn, m) })
}

func (inv *inventory) checkExtensions(ctx context.Context, conn *pgx.Conn, m *shards.Map) error {
	var errs []error
	for _, e := range m.Extensions() {
		if have, ok := inv.extensions[e.Name]; ok {
			if found, want := have.otherwise(m, e); found != "" {
				errs = append(errs, fmt.Errorf("extension %s: %s; expected %s", e.Name, found, want))
			}
		}
	}
	for _, e := range inv.lacking(m) {
		names := extensionNames(m)
		wrong, err := unavailable(ctx, conn, e, names[:slices.Index(names, e.Name)])
		if err != nil {
			return err
		}
		if wrong != "" {
			errs = append(errs, fmt.Errorf("extension %s: %s", e.Name, wrong))
		}
	}
	return errors.Join(errs...)
}

// unavailable says why a server cannot make an extension, by its files; empty if it can. Those before it are made first.
func unavailable(ctx context.Context, conn *pgx.Conn, e shards.Extension, before []string) (string, error) {
	const query = `
		SELECT ARRAY(SELECT v.version FROM pg_available_extension_versions v WHERE v.name = $1),
			coalesce(nullif($2, ''), (SELECT default_version FROM pg_available_extensions a WHERE a.name = $1), ''),
			coalesce((SELECT v.schema::text FROM pg_available_extension_versions v WHERE v.name = $1 AND v.schema IS NOT NULL LIMIT 1), ''),
			ARRAY(SELECT DISTINCT unnest(v.requires)::text FROM pg_available_extension_versions v WHERE v.name = $1 AND v.version = coalesce(nullif($2, ''),
				(SELECT default_version FROM pg_available_extensions a WHERE a.name = $1))
				EXCEPT SELECT extname::text FROM pg_extension EXCEPT SELECT unnest($3::text[]) ORDER BY 1)`
	var versions, required []string
	var version, schema string
	if err := conn.QueryRow(ctx, query, e.Name, e.Version, before).Scan(&versions, &version, &schema, &required); err != nil {
		return "", err
	}
	switch {
	case len(versions) == 0:
		return "the server has no files of it: expected the operating system's package with it, such as postgresql-contrib for those of Postgres itself", nil
	case !slices.Contains(versions, version):
		return fmt.Sprintf("the server has no version %s of it: expected one of %s", version, strings.Join(versions, ", ")), nil
	case schema != "" && schema != e.Schema:
		return fmt.Sprintf("it can only be in schema %s: expected {name: %s, schema: %[1]s} in the config", schema, e.Name), nil
	case len(required) > 0:
		return fmt.Sprintf("it needs %s: expected that before it in extensions of the config", strings.Join(required, ", ")), nil
	}
	return "", nil
}

// extensionScript returns the statements that make an extension. Services may use its schema, as they may use public.
func extensionScript(e shards.Extension) string {
	script := ""
	if e.Schema != "pg_catalog" {
		script = fmt.Sprintf(`
DO $kiloshard$
BEGIN
  IF to_regnamespace(%[1]s) IS NULL THEN
    CREATE SCHEMA %[2]s;
    GRANT USAGE ON SCHEMA %[2]s TO PUBLIC;
  END IF;
END
$kiloshard$;
`, literal(quoted(e.Schema)), quoted(e.Schema))
	}
	script += fmt.Sprintf("CREATE EXTENSION IF NOT EXISTS %s SCHEMA %s", quoted(e.Name), quoted(e.Schema))
	if e.Version != "" {
		script += " VERSION " + quoted(e.Version)
	}
	return script + ";\n"
}

// makeExtensions makes what a host lacks, each in a transaction.
func (inv *inventory) makeExtensions(ctx context.Context, conn *pgx.Conn, m *shards.Map) error {
	for _, e := range inv.lacking(m) {
		err := retryLocks(ctx, func() error { return execScript(ctx, conn, extensionScript(e)) })
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "42501" {
			return fmt.Errorf("extension %s: %w: run this there once, as a superuser or as the service's administrator, and then this command again: CREATE EXTENSION %s SCHEMA %s",
				e.Name, err, shown(e.Name), shown(e.Schema))
		}
		if err != nil {
			return fmt.Errorf("extension %s: %w", e.Name, err)
		}
	}
	return nil
}

// extensionsOf names those that hosts lack, such as "citext on pg-a".
func extensionsOf(m *shards.Map, inventories []*inventory) []string {
	var names []string
	for _, inv := range inventories {
		for _, e := range inv.lacking(m) {
			names = append(names, e.Name+" on "+inv.host.Name)
		}
	}
	return names
}

// extensions compares those of a host with the map's and with the first host's versions, and names those that are in a shard.
func (v *verification) extensions(inv *inventory) {
	for _, e := range v.m.Extensions() {
		have, ok := inv.extensions[e.Name]
		if !ok {
			v.differ(KindExtension, inv, e.Schema, "extension "+e.Name+" is missing", "the extension; kiloshard create makes it")
			continue
		}
		e.Version = cmp.Or(e.Version, v.versionOf(e.Name))
		if found, want := have.otherwise(v.m, e); found != "" {
			v.differ(KindExtension, inv, have.schema, "extension "+e.Name+": "+found, want)
		}
	}
	for name, have := range inv.extensions {
		_, inShard := v.m.NumberOf(have.schema)
		named := slices.ContainsFunc(v.m.Extensions(), func(e shards.Extension) bool { return e.Name == name })
		if inShard && !named {
			found, want := have.otherwise(v.m, shards.Extension{Name: name, Schema: "public"})
			v.differ(KindExtension, inv, have.schema, "extension "+name+": "+found, want)
		}
	}
}

// versionOf returns the version that the first host with an extension has.
func (v *verification) versionOf(name string) string {
	for _, inv := range v.inventories {
		if have, ok := inv.extensions[name]; ok {
			return have.version
		}
	}
	return ""
}

// shown is a name in a statement that a message proposes.
func shown(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return quoted(name)
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// quoted quotes a name.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a text.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
