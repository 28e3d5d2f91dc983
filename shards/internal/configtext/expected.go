package configtext

import (
	"regexp"
	"strings"
)

const (
	name       = "a name of letters, digits, '.', '_' and '-'"
	objectName = "a small letter or '_', then small letters, digits and '_', 40 at most"
	hostDSN    = `how to reach the database, such as "postgres://app:${PG_A_PASSWORD}@10.0.0.1/app?sslmode=verify-full"`
	hostName   = "the name of a host"
	schema     = "the name of a schema"
	schemas    = "a list of schemas, or [] for none"
	extension  = `the name of an extension, such as citext, or {name: citext, schema: extensions, version: "1.6"}`
	pemFile    = "a PEM file"
	variables  = `names of variables that DSNs out of the store may have anywhere, such as ["PG_*"]`
	trusted    = `hosts that DSNs out of the store may name, such as ["10.0.0.*", "*.db.example.com"]`
	prefix     = "what all keys begin with, such as /kiloshard/photos/"
)

// expected describes the values of a field, by its name without indexes. A strategy in strategy.otherwise has the
// fields of strategy, and what store.local has is not here.
var expected = map[string]string{
	"cluster":         name,
	"schema_prefix":   "what the schemas' names begin with, such as shard_",
	"layout.time":     "its bits, or time: 0 for IDs without a time",
	"layout.shard":    "its bits",
	"layout.sequence": "its bits",

	"strategy.by":             "modulo, hash, range, directory or id",
	"strategy.hash":           "xxhash, md5 or hex",
	"strategy.ranges":         "a list of ranges such as {from: 0, shard: 0}",
	"strategy.ranges[].shard": "the shard of the range",
	"strategy.allocate.by":    "weighted, least_used or capacity",

	"store.kind":        "file, postgres or etcd",
	"store.dsn":         `how to reach the control database, such as "postgres://kiloshard:${MAP_PASSWORD}@10.0.0.9/kiloshard?sslmode=verify-full"`,
	"store.endpoints":   `a list of servers, such as ["https://10.0.0.9:2379"]`,
	"store.endpoints[]": `the URL of a server, such as "https://10.0.0.9:2379", without a user or a password`,
	"store.prefix":      prefix,
	"store.user":        "the name of a user",
	"store.password":    `a password, such as "${ETCD_PASSWORD}"`,
	"store.ca":          pemFile,
	"store.cert":        pemFile,
	"store.key":         pemFile,
	"store.variables":   variables,
	"store.variables[]": variables,
	"store.hosts":       trusted,
	"store.hosts[]":     trusted,

	"hosts":              "a list of hosts",
	"hosts[].name":       name,
	"hosts[].dsn":        hostDSN,
	"hosts[].direct":     hostDSN,
	"hosts[].replicas":   "a list of DSNs, or [] for none",
	"hosts[].replicas[]": hostDSN,

	"placement":        "a list of placements",
	"placement[].host": hostName,

	"migrations":           "a directory",
	"search_path":          schemas,
	"search_path[]":        schema,
	"shared":               schemas,
	"shared[]":             schema,
	"extensions":           "a list of extensions, or [] for none",
	"extensions[]":         extension,
	"extensions[].name":    extension,
	"extensions[].schema":  schema,
	"extensions[].version": `a version, such as "1.6"`,

	"generators":         "a list of generators",
	"generators[].kind":  "one of tickets, interleaved, sequence, row, uuidv4, uuidv7",
	"generators[].names": "a list of names, such as [photo, account]", "generators[].names[]": objectName,
	"generators[].hosts": "a list of names of hosts", "generators[].hosts[]": hostName,

	"types":              "a list of types of objects",
	"types[].name":       objectName,
	"password_command":   `a program and its arguments, such as [./token, "5432"]`,
	"password_command[]": "a word of the command",
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// Expected describes, for messages, the values that a field may have. The field is named as in "hosts[0].dsn". The text
// is empty for a field whose type says enough.
func Expected(field string) string {
	field = index.ReplaceAllString(field, "[]")
	if setting, ok := strings.CutPrefix(field, "store.local."); ok {
		return "what " + setting + " is in a DSN"
	}
	if other, ok := strings.CutPrefix(field, "strategy.otherwise."); ok {
		field = "strategy." + other
	}
	return expected[field]
}
