package shards

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
)

// format says how kiloshard.yaml is written. The names of its fields are in the tags of [Config].
var format = configfile.Format{
	Scalars: []configfile.Scalar{
		configfile.ScalarOf(`shards such as 7, 0-1023 or "0-9,77"`, readSet, writeSet),
		configfile.ScalarOf(expectedTime, readTime, writeTime),
		configfile.ScalarOf(expectedKey, readKey, Key.written),
		configfile.ScalarOf("", nil, strategyField),
		configfile.ScalarOf("", nil, writeExtension),
	},
	Expected: expectations(),
	Keys:     map[string][]string{"store.local": LocalKeys},
	Advise: func(unknown string, names []string) string {
		if _, err := ParseSet(unknown); err == nil && slices.Contains(names, "shards") {
			return `; a list of shards with a comma stands in quotes, such as "0-9,77"`
		}
		return ""
	},
}

const (
	expectedTime     = "a time such as 2026-01-01T00:00:00Z, or a day such as 2026-01-01"
	expectedKey      = "a whole number of 64 bits, or a text in quotes"
	expectedSchema   = "the name of a schema"
	expectedSchemas  = "a list of schemas, or [] for none"
	expectedHost     = "the name of a host"
	expectedPEM      = "a PEM file"
	expectedStrategy = "modulo, hash, range, directory or id"
	expectedHash     = "xxhash, md5 or hex"
	expectedWays     = "weighted, least_used or capacity"
	expectedVersion  = `a version, such as "1.6"`
)

// expectations returns what each field may be, for the messages of [Parse].
func expectations() map[string]string {
	all := map[string]string{
		"cluster":         expectedName,
		"schema_prefix":   "what the schemas' names begin with, such as shard_",
		"layout.time":     "its bits, or time: 0 for IDs without a time",
		"layout.shard":    "its bits",
		"layout.sequence": "its bits",

		"strategy.allocate.by":           expectedWays,
		"strategy.otherwise.allocate.by": expectedWays,

		"store.kind":        expectedKind,
		"store.dsn":         expectedStoreDSN,
		"store.endpoints":   expectedEndpoints,
		"store.endpoints[]": expectedEndpoint,
		"store.prefix":      "what all keys begin with, such as /kiloshard/photos/",
		"store.user":        "the name of a user",
		"store.password":    expectedPassword,
		"store.ca":          expectedPEM,
		"store.cert":        expectedPEM,
		"store.key":         expectedPEM,
		"store.variables":   expectedVariables,
		"store.variables[]": expectedVariables,
		"store.hosts":       expectedTrusted,
		"store.hosts[]":     expectedTrusted,

		"hosts":              "a list of hosts",
		"hosts[].name":       expectedName,
		"hosts[].dsn":        expectedDSN,
		"hosts[].replicas":   "a list of DSNs, or [] for none",
		"hosts[].replicas[]": expectedDSN,

		"placement":        "a list of placements",
		"placement[].host": expectedHost,

		"migrations":           "a directory",
		"search_path":          expectedSchemas,
		"search_path[]":        expectedSchema,
		"shared":               expectedSchemas,
		"shared[]":             expectedSchema,
		"extensions":           "a list of extensions, or [] for none",
		"extensions[]":         expectedExtension,
		"extensions[].name":    expectedExtension,
		"extensions[].schema":  expectedSchema,
		"extensions[].version": expectedVersion,

		"generators":         "a list of generators",
		"generators[].kind":  expectedKinds(),
		"generators[].names": "a list of names, such as [photo, account]", "generators[].names[]": expectedGeneratorName,
		"generators[].hosts": "a list of names of hosts", "generators[].hosts[]": expectedHost,

		"types":              "a list of types of objects",
		"types[].name":       expectedGeneratorName,
		"password_command":   `a program and its arguments, such as [./token, "5432"]`,
		"password_command[]": "a word of the command",
	}
	for _, at := range []string{"strategy", "strategy.otherwise"} {
		all[at+".by"] = expectedStrategy
		all[at+".hash"] = expectedHash
		all[at+".ranges"] = "a list of ranges such as {from: 0, shard: 0}"
		all[at+".ranges[].shard"] = "the shard of the range"
	}
	for _, key := range LocalKeys {
		all["store.local."+key] = "what " + key + " is in a DSN"
	}
	return all
}

func readSet(text string, _ bool) (Set, error) { return ParseSet(text) }

// writeSet writes a set, in quotes if it has commas.
func writeSet(s Set) string {
	text := s.String()
	if strings.Contains(text, ",") {
		return strconv.Quote(text)
	}
	return text
}

// readTime reads a time, or a day, which means midnight UTC of that day.
func readTime(text string, number bool) (time.Time, error) {
	if number {
		return time.Time{}, &FieldError{Found: "a number", Expected: expectedTime}
	}
	for _, format := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(format, text); err == nil {
			return t.UTC(), nil
		}
	}
	found := quoted(text)
	if strings.Trim(text, "0123456789-:.+TZ ") == "" {
		found = strconv.Quote(text)
	}
	return time.Time{}, &FieldError{Found: found, Expected: expectedTime}
}

func writeTime(t time.Time) string { return t.Format(time.RFC3339Nano) }

// readKey reads a number or a text, with or without quotes.
func readKey(text string, number bool) (Key, error) {
	if !number {
		return TextKey(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return Key{}, &FieldError{Found: text, Expected: expectedKey}
	}
	return NumberKey(n), nil
}

// writeExtension writes only the name if the rest is the default.
func writeExtension(e Extension) string {
	if e.Schema == "public" && e.Version == "" {
		return configfile.Plain(e.Name)
	}
	text := "{name: " + configfile.Plain(e.Name) + ", schema: " + configfile.Plain(e.Schema)
	if e.Version != "" {
		text += ", version: " + strconv.Quote(e.Version)
	}
	return text + "}"
}

// strategyField writes the strategy of a map: each range has a line of its own.
func strategyField(s Strategy) string {
	if s.By != ByRange {
		return s.String()
	}
	text := "\n  by: range"
	if s.RefuseIDs {
		text += "\n  refuse_ids: true"
	}
	text += "\n  ranges:"
	for _, r := range s.Ranges {
		text += "\n    - " + r.written()
	}
	return text
}
