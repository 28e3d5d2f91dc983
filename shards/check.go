package shards

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
)

// maxPrefixLen leaves room, in a Postgres name of 63 bytes, for five digits and for the ending
// that a moved shard's old schema gets.
const maxPrefixLen = 40

var (
	schemaPattern = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

const (
	expectedName = "a name of letters, digits, '.', '_' and '-'"
	expectedDSN  = `how to reach the database, such as "postgres://app:${PG_A_PASSWORD}@10.0.0.1/app?sslmode=verify-full"`
)

// check returns a [FieldError] for the first field that is wrong. Defaults are filled in already.
func (c Config) check() error {
	if c.Remote() {
		return &FieldError{Field: "store.kind", Found: c.Store.Kind + ", which holds the map: this config has none", Expected: "the config that mapstore loads from there"}
	}
	return c.all(
		checkCluster, checkSchemaPrefix, checkEpoch, checkLayout, checkShards,
		checkStore, checkHosts, checkStrategy, checkPlacement, checkSearchPath, checkShared, checkExtensions, checkGenerators, checkTypes, checkText,
	)
}

// all returns the first error of the checks.
func (c Config) all(checks ...func(Config) error) error {
	for _, check := range checks {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

func checkCluster(c Config) error {
	if !namePattern.MatchString(c.Cluster) {
		return &FieldError{Field: "cluster", Found: quoted(c.Cluster), Expected: expectedName}
	}
	return nil
}

func checkSchemaPrefix(c Config) error {
	const expected = "a small letter or '_', then small letters, digits and '_', 40 at most, not starting with pg_"
	p := c.SchemaPrefix
	if !schemaPattern.MatchString(p) || len(p) > maxPrefixLen || strings.HasPrefix(p, "pg_") {
		return &FieldError{Field: "schema_prefix", Found: quoted(p), Expected: expected}
	}
	return nil
}

func checkEpoch(c Config) error {
	switch {
	case c.Epoch.IsZero() && c.Layout.Time == 0:
		return nil
	case c.Epoch.IsZero():
		return &FieldError{Field: "epoch", Found: "missing", Expected: "the time that IDs count from, such as 2026-01-01T00:00:00Z"}
	case c.Epoch.Nanosecond()%int(time.Millisecond) != 0:
		return &FieldError{Field: "epoch", Found: c.Epoch.Format(time.RFC3339Nano), Expected: "whole milliseconds"}
	case c.Epoch.Year() < 1970 || c.Epoch.Year() > 5000:
		return &FieldError{Field: "epoch", Found: c.Epoch.Format(time.RFC3339Nano), Expected: "a year from 1970 to 5000"}
	}
	return nil
}

func checkLayout(c Config) error { return c.Layout.Validate() }

func checkShards(c Config) error {
	if most := c.Layout.MaxShards(); c.Shards < 1 || c.Shards > most {
		found := fmt.Sprint(c.Shards)
		if c.Shards == 0 {
			found = "missing"
		}
		return &FieldError{
			Field: "shards", Found: found,
			Expected: fmt.Sprintf("1 to %d, which is what the %d shard bits of layout %s hold", most, c.Layout.Shard, c.Layout),
		}
	}
	return nil
}

func checkHosts(c Config) error {
	if len(c.Hosts) == 0 {
		return &FieldError{Field: "hosts", Found: "none", Expected: "at least one host, such as {name: pg-a, dsn: \"postgres://…\"}"}
	}
	for i, h := range c.Hosts {
		field := fmt.Sprintf("hosts[%d]", i)
		if !namePattern.MatchString(h.Name) {
			return &FieldError{Field: field + ".name", Found: quoted(h.Name), Expected: expectedName}
		}
		if slices.ContainsFunc(c.Hosts[:i], func(other Host) bool { return other.Name == h.Name }) {
			return &FieldError{Field: field + ".name", Found: quoted(h.Name) + " a second time", Expected: "each host once"}
		}
		if h.DSN == "" {
			return &FieldError{Field: field + ".dsn", Found: "missing", Expected: expectedDSN}
		}
		if i := slices.Index(h.Replicas, ""); i >= 0 {
			return &FieldError{Field: fmt.Sprintf("%s.replicas[%d]", field, i), Found: "empty", Expected: expectedDSN}
		}
		if h.Weight < 0 {
			return &FieldError{Field: field + ".weight", Found: fmt.Sprint(h.Weight), Expected: "1 or more"}
		}
		if h.Capacity < 0 {
			return &FieldError{Field: field + ".capacity", Found: fmt.Sprint(h.Capacity), Expected: "the most keys on this host, 1 or more"}
		}
	}
	return nil
}

// checkPlacement checks that every shard is on exactly one host.
func checkPlacement(c Config) error {
	home := make([]int, c.Shards) // 1-based index into Placement
	for i, p := range c.Placement {
		field := fmt.Sprintf("placement[%d]", i)
		if !slices.ContainsFunc(c.Hosts, func(h Host) bool { return h.Name == p.Host }) {
			return &FieldError{Field: field + ".host", Found: quoted(p.Host), Expected: "one of the hosts " + hostNames(c.Hosts)}
		}
		if p.Shards.Len() == 0 {
			return &FieldError{Field: field + ".shards", Found: "none", Expected: "shards such as 0-1023"}
		}
		for n := range p.Shards.All() {
			if int(n) >= c.Shards {
				return &FieldError{Field: field + ".shards", Found: fmt.Sprintf("shard %d", n), Expected: fmt.Sprintf("0 to %d, since shards is %d", c.Shards-1, c.Shards)}
			}
			if other := home[n]; other != 0 {
				found := fmt.Sprintf("shard %d, which placement[%d] puts on %s already", n, other-1, c.Placement[other-1].Host)
				return &FieldError{Field: field + ".shards", Found: found, Expected: "each shard once"}
			}
			home[n] = i + 1
		}
	}
	var homeless []Number
	for n, i := range home {
		if i == 0 {
			homeless = append(homeless, Number(n))
		}
	}
	if len(homeless) > 0 {
		return &FieldError{Field: "placement", Found: fmt.Sprintf("no host for %d shards, the first of them %d", len(homeless), homeless[0]), Expected: fmt.Sprintf("a host for each shard from 0 to %d", c.Shards-1)}
	}
	return nil
}

func checkSearchPath(c Config) error {
	for i, schema := range c.SearchPath {
		if schema == "" || len(schema) > 63 {
			return &FieldError{Field: fmt.Sprintf("search_path[%d]", i), Found: quoted(schema), Expected: expectedSchema}
		}
	}
	return nil
}

// checkShared refuses schemas that are no schema of the services: those of shards, of Kiloshard and of Postgres.
func checkShared(c Config) error {
	for i, schema := range c.SharedSchemas {
		if !c.isServices(schema) || slices.Contains(c.SharedSchemas[:i], schema) {
			return &FieldError{
				Field: fmt.Sprintf("shared[%d]", i), Found: quoted(schema),
				Expected: "the name of a schema, once, that is neither a shard's nor Kiloshard's nor Postgres's own",
			}
		}
	}
	return nil
}

// isServices reports whether a schema may be one of the services: none of shards, of Kiloshard and of Postgres.
func (c Config) isServices(schema string) bool {
	shard, found := strings.CutPrefix(schema, c.SchemaPrefix)
	return schema != "" && len(schema) <= 63 && !strings.HasPrefix(schema, "pg_") && !strings.HasPrefix(schema, "kiloshard") &&
		schema != "information_schema" && !(found && shard != "" && strings.Trim(shard, "0123456789") == "")
}

// checkText checks that the config can be written as YAML.
func checkText(c Config) error {
	texts := map[string]string{
		"migrations": c.Migrations, "store.dsn": c.Store.DSN, "store.user": c.Store.User, "store.password": c.Store.Password,
		"store.ca": c.Store.CA, "store.cert": c.Store.Cert, "store.key": c.Store.Key,
	}
	for i, h := range c.Hosts {
		texts[fmt.Sprintf("hosts[%d].dsn", i)] = h.DSN
		for k, dsn := range h.Replicas {
			texts[fmt.Sprintf("hosts[%d].replicas[%d]", i, k)] = dsn
		}
	}
	for i, word := range c.PasswordCommand {
		texts[fmt.Sprintf("password_command[%d]", i)] = word
	}
	for i, schema := range c.SearchPath {
		texts[fmt.Sprintf("search_path[%d]", i)] = schema
	}
	for i, schema := range c.SharedSchemas {
		texts[fmt.Sprintf("shared[%d]", i)] = schema
	}
	for i, e := range c.Extensions {
		texts[fmt.Sprintf("extensions[%d].schema", i)], texts[fmt.Sprintf("extensions[%d].version", i)] = e.Schema, e.Version
	}
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		if text := texts[field]; !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return &FieldError{Field: field, Found: "bytes that are not text", Expected: "text in UTF-8"}
		}
	}
	return nil
}

func hostNames(hosts []Host) string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Name
	}
	return strings.Join(names, ", ")
}

// quoted quotes what a user wrote, unless it may be a DSN in the wrong field.
func quoted(text string) string { return configfile.Quoted(text) }
