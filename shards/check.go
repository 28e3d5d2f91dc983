package shards

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

var (
	namePattern      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	extensionPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$`)
)

// check returns a [FieldError] for the first field that is wrong. Defaults are filled in already.
func (c Config) check() error {
	if c.Remote() {
		return &FieldError{Field: "store.kind", Found: c.Store.Kind + ", which holds the map: this config has none", Expected: "the config that mapstore loads from there"}
	}
	for _, check := range []func() error{
		c.checkCluster, c.checkSchemaPrefix, c.checkEpoch, c.Layout.Validate, c.checkShards,
		c.Store.check, c.checkHosts, c.checkStrategy, c.checkPlacement,
		c.checkSearchPath, c.checkShared, c.checkExtensions, c.checkGenerators, c.checkTypes, c.checkOldIDs, c.checkText,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkRemote is check for a config whose map is in a store.
func (c Config) checkRemote() error { return cmp.Or(c.checkCluster(), c.Store.check(), c.checkText()) }

func (c Config) checkCluster() error {
	if !namePattern.MatchString(c.Cluster) {
		return invalid("cluster", quoted(c.Cluster))
	}
	return nil
}

func (c Config) checkSchemaPrefix() error {
	if p := c.SchemaPrefix; !isObjectName(p) || strings.HasPrefix(p, "pg_") {
		const expected = "a small letter or '_', then small letters, digits and '_', 40 at most, not starting with pg_"
		return &FieldError{Field: "schema_prefix", Found: quoted(p), Expected: expected}
	}
	return nil
}

func (c Config) checkEpoch() error {
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

func (c Config) checkShards() error {
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

func (c Config) checkHosts() error {
	if len(c.Hosts) == 0 {
		return &FieldError{Field: "hosts", Found: "none", Expected: `at least one host, such as {name: pg-a, dsn: "postgres://…"}`}
	}
	for i, h := range c.Hosts {
		field := fmt.Sprintf("hosts[%d]", i)
		if !namePattern.MatchString(h.Name) {
			return invalid(field+".name", quoted(h.Name))
		}
		if slices.ContainsFunc(c.Hosts[:i], func(other Host) bool { return other.Name == h.Name }) {
			return &FieldError{Field: field + ".name", Found: quoted(h.Name) + " a second time", Expected: "each host once"}
		}
		if h.DSN == "" {
			return invalid(field+".dsn", "missing")
		}
		if i := slices.Index(h.Replicas, ""); i >= 0 {
			return invalid(fmt.Sprintf("%s.replicas[%d]", field, i), "empty")
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

func (c Config) checkStrategy() error {
	if err := c.Strategy.check("strategy", c.Shards); err != nil {
		return err
	}
	for i, h := range c.Hosts {
		if a := c.Strategy.Allocate; a.By == MostLeft && a.Capacity == 0 && h.Capacity == 0 && !h.Closed {
			return &FieldError{
				Field: fmt.Sprintf("hosts[%d].capacity", i), Found: "missing",
				Expected: "the most keys on this host, or strategy.allocate.capacity, since keys are allocated by capacity",
			}
		}
	}
	return nil
}

func (c Config) checkGenerators() error {
	return checkGenerators(c.Generators, c.hostNames(), c.Shards)
}

// checkPlacement checks that every shard is on exactly one host.
func (c Config) checkPlacement() error {
	placed := make([]int, c.Shards) // by number: 1-based index into Placement
	for i, p := range c.Placement {
		field := fmt.Sprintf("placement[%d]", i)
		if hosts := c.hostNames(); !slices.Contains(hosts, p.Host) {
			return &FieldError{Field: field + ".host", Found: quoted(p.Host), Expected: "one of the hosts " + strings.Join(hosts, ", ")}
		}
		if p.Shards.Len() == 0 {
			return &FieldError{Field: field + ".shards", Found: "none", Expected: "shards such as 0-1023"}
		}
		for n := range p.Shards.All() {
			if int(n) >= c.Shards {
				return &FieldError{Field: field + ".shards", Found: fmt.Sprintf("shard %d", n), Expected: fmt.Sprintf("0 to %d, since shards is %d", c.Shards-1, c.Shards)}
			}
			if other := placed[n]; other != 0 {
				found := fmt.Sprintf("shard %d, which placement[%d] puts on %s already", n, other-1, c.Placement[other-1].Host)
				return &FieldError{Field: field + ".shards", Found: found, Expected: "each shard once"}
			}
			placed[n] = i + 1
		}
	}
	if first := slices.Index(placed, 0); first >= 0 {
		missing := 0
		for _, i := range placed {
			if i == 0 {
				missing++
			}
		}
		return &FieldError{Field: "placement", Found: fmt.Sprintf("no host for %d shards, the first of them %d", missing, first), Expected: fmt.Sprintf("a host for each shard from 0 to %d", c.Shards-1)}
	}
	return nil
}

func (c Config) checkSearchPath() error {
	for i, schema := range c.SearchPath {
		if schema == "" || len(schema) > 63 {
			return invalid(fmt.Sprintf("search_path[%d]", i), quoted(schema))
		}
	}
	return nil
}

// checkShared refuses the schemas of shards, of Kiloshard and of Postgres.
func (c Config) checkShared() error {
	for i, schema := range c.SharedSchemas {
		if !c.ownsSchema(schema) || slices.Contains(c.SharedSchemas[:i], schema) {
			return &FieldError{
				Field: fmt.Sprintf("shared[%d]", i), Found: quoted(schema),
				Expected: "the name of a schema, once, that is neither a shard's nor Kiloshard's nor Postgres's own",
			}
		}
	}
	return nil
}

// ownsSchema reports whether a schema belongs to the user: it is not a shard's, Kiloshard's or Postgres's.
func (c Config) ownsSchema(schema string) bool {
	shard, found := strings.CutPrefix(schema, c.SchemaPrefix)
	return schema != "" && len(schema) <= 63 && !strings.HasPrefix(schema, "pg_") && !strings.HasPrefix(schema, "kiloshard") &&
		schema != "information_schema" && !(found && shard != "" && strings.Trim(shard, "0123456789") == "")
}

// checkExtensions refuses the schemas of shards, which move to other hosts, and Kiloshard's own.
func (c Config) checkExtensions() error {
	for i, e := range c.Extensions {
		field := fmt.Sprintf("extensions[%d]", i)
		if !extensionPattern.MatchString(e.Name) {
			return invalid(field, quoted(e.Name))
		}
		if slices.ContainsFunc(c.Extensions[:i], func(o Extension) bool { return o.Name == e.Name }) {
			return &FieldError{Field: field, Found: quoted(e.Name) + " a second time", Expected: "each extension once"}
		}
		if e.Schema != "pg_catalog" && !c.ownsSchema(e.Schema) {
			return &FieldError{Field: field + ".schema", Found: quoted(e.Schema), Expected: "the name of a schema that is neither a shard's nor Kiloshard's"}
		}
		if len(e.Version) > 63 {
			return invalid(field+".version", quoted(e.Version))
		}
	}
	return nil
}

// checkOldIDs refuses a value that no ID of a shard can have. Without a time shard 0 makes small IDs, as sequences do.
func (c Config) checkOldIDs() error {
	const field = "old_ids_below"
	switch {
	case c.OldIDsBelow == 0:
		return nil
	case !c.Layout.HasTime():
		return &FieldError{Field: field, Found: fmt.Sprint(int64(c.OldIDsBelow)), Expected: "none, since IDs have no time: those of shard 0 are as small as those of a sequence"}
	case c.OldIDsBelow < 0 || c.Layout.Parts(c.OldIDsBelow).Milliseconds > c.Layout.MaxMilliseconds():
		return &FieldError{Field: field, Found: fmt.Sprint(int64(c.OldIDsBelow)), Expected: "an ID that a shard can make, which kiloshard adopt views prints"}
	}
	return nil
}

func (c Config) checkTypes() error {
	most := maxObjectTypes
	if c.Layout.Type > 0 {
		most = min(most, c.Layout.MaxTypes())
	}
	for i, t := range c.Types {
		field := fmt.Sprintf("types[%d]", i)
		if !isObjectName(t.Name) {
			return invalid(field+".name", quoted(t.Name))
		}
		if t.Number < 0 || t.Number >= most {
			return &FieldError{Field: field + ".number", Found: fmt.Sprint(t.Number), Expected: fmt.Sprintf("0 to %d", most-1)}
		}
		if k := slices.IndexFunc(c.Types[:i], func(o ObjectType) bool { return o.Name == t.Name || o.Number == t.Number }); k >= 0 {
			return &FieldError{Field: field, Found: format.Flow(t) + ", beside " + format.Flow(c.Types[k]), Expected: "each name and each number once"}
		}
	}
	return nil
}

// checkText checks that the config can be written as YAML.
func (c Config) checkText() error {
	texts := map[string]string{
		"migrations": c.Migrations, "store.dsn": c.Store.DSN, "store.user": c.Store.User, "store.password": c.Store.Password,
		"store.ca": c.Store.CA, "store.cert": c.Store.Cert, "store.key": c.Store.Key,
	}
	for i, h := range c.Hosts {
		texts[fmt.Sprintf("hosts[%d].dsn", i)], texts[fmt.Sprintf("hosts[%d].direct", i)] = h.DSN, h.Direct
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
