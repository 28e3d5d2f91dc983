package shards_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// document is a valid config, its line numbers for the tests below.
const document = `cluster: photos
shards: 2048
schema_prefix: shard_
epoch: 2026-01-01T00:00:00Z
layout: {time: 41, shard: 13, sequence: 10}
strategy: {by: modulo}
store: {kind: file}
hosts:
  - {name: pg-a, dsn: "postgres://app:${PG_A_PASSWORD}@10.0.0.1/app", replicas: [], weight: 1}
  - {name: pg-b, dsn: "postgres://app:${PG_B_PASSWORD}@10.0.0.2/app"}
placement:
  - {shards: 0-1023, host: pg-a}
  - {shards: 1024-2047, host: pg-b}
migrations: ./migrations
search_path: []
`

// environment has the variables of document, with passwords that need care in a URL.
func environment(name string) (string, bool) {
	value, ok := map[string]string{
		"PG_A_PASSWORD": "hunter2/@:?#[] %&+é",
		"PG_B_PASSWORD": "hunter2",
		"PG_A_DSN":      "postgres://app:hunter2%2F@10.0.0.1/app",
		"PG_HOST":       "10.0.0.3",
		"EMPTY":         "",
	}[name]
	return value, ok
}

// refused returns the error with which Parse refuses a document.
func refused(t *testing.T, text string) *shards.FieldError {
	t.Helper()
	_, err := shards.Parse("kiloshard.yaml", []byte(text), environment)
	var e *shards.FieldError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, expected a FieldError", err)
	}
	return e
}

// Each test replaces a part of document.
func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		old, new string
		err      string
	}{
		{"no cluster", "cluster: photos", "", `2: cluster: missing; expected a name`},
		{"odd cluster", "photos", "my photos", `1: cluster: "my photos"; expected a name`},
		{"prefix with a quote", "shard_\n", "sh'ard_\n", `3: schema_prefix: "sh'ard_"; expected a small letter`},
		{"prefix with a capital", "shard_\n", "Shard_\n", `3: schema_prefix: "Shard_"; expected a small letter`},
		{"prefix of Postgres", "shard_\n", "pg_\n", `3: schema_prefix: "pg_"; expected a small letter`},
		{"prefix too long", "shard_\n", strings.Repeat("s", 41) + "\n", `3: schema_prefix: "sss`},
		{"no epoch", "epoch: 2026-01-01T00:00:00Z\n", "", `1: epoch: missing; expected the time`},
		{"part of a millisecond", "00:00Z", "00:00.0001Z", `4: epoch: 2026-01-01T00:00:00.0001Z; expected whole milliseconds`},
		{"epoch before 1970", "2026", "1969", `4: epoch: 1969-01-01T00:00:00Z; expected a year from 1970 to 5000`},
		{"layout of 65 bits", "shard: 13", "shard: 14", `5: layout: 41|14|10, which is 65 bits; expected at most 64 bits in all`},
		{"layout without shards", "shard: 13, ", "", `5: layout.shard: missing; expected its bits`},
		{"no bits of shard", "shard: 13", "shard: 0", `5: layout.shard: 0 bits; expected 1 to 16 bits`},
		{"a forgotten time", "time: 41, ", "", `5: layout.time: missing; expected its bits, or time: 0 for IDs without a time`},
		{"a time without a value", "time: 41", "time:", `5: layout.time: missing; expected its bits, or time: 0 for IDs without a time`},
		{"only time: 0", "time: 41, shard: 13, sequence: 10", "time: 0", `5: layout.shard: missing; expected its bits`},
		{"nothing but zeros", "time: 41, shard: 13, sequence: 10", "time: 0, shard: 0, sequence: 0", `5: layout.shard: 0 bits; expected 1 to 16 bits`},
		{"layout without a sequence", ", sequence: 10", "", `5: layout.sequence: missing; expected its bits`},
		{"too much time", "time: 41", "time: 48", `5: layout.time: 48 bits; expected 1 to 47 bits, or 0 for IDs without a time`},
		{"a negative type", "sequence: 10", "type: -1, sequence: 10", `5: layout.type: -1; expected a whole number, 0 or more`},
		{"too much type", "sequence: 10", "type: 17, sequence: 10", `5: layout.type: 17 bits; expected 1 to 16 bits, or 0 for IDs without a type`},
		{"too much sequence", "sequence: 10", "sequence: 23", `5: layout.sequence: 23 bits; expected 1 to 22 bits`},
		{"too much sequence without a time", "time: 41, shard: 13, sequence: 10", "time: 0, shard: 13, sequence: 49", `5: layout.sequence: 49 bits; expected 2 to 48 bits without a time`},
		{"64 bits without a time", "time: 41, shard: 13, sequence: 10", "time: 0, shard: 16, sequence: 48", `5: layout: 16 shard|48 sequence, which is 64 bits; expected at most 63 bits in all without a time`},
		{"layout of 65 bits with a type", "sequence: 10", "type: 1, sequence: 10", `5: layout: 41 time|13 shard|1 type|10 sequence, which is 65 bits; expected at most 64 bits in all`},
		{"9000 shards in 13 bits", "2048\n", "9000\n", `2: shards: 9000; expected 1 to 8192, which is what the 13 shard bits of layout 41|13|10 hold`},
		{"no shards", "shards: 2048\n", "", `1: shards: missing; expected 1 to 8192`},
		{"another strategy", "modulo", "magic", `6: strategy.by: "magic"; expected modulo`},
		{"another store", "file", "floppy", `7: store.kind: "floppy"; expected file, postgres or etcd`},
		{"no host's name", "name: pg-a, ", "", `9: hosts[0].name: missing; expected a name`},
		{"odd host's name", "name: pg-a", "name: pg a", `9: hosts[0].name: "pg a"; expected a name`},
		{"host twice", "name: pg-b", "name: pg-a", `10: hosts[1].name: "pg-a" a second time; expected each host once`},
		{"no DSN", `, dsn: "postgres://app:${PG_B_PASSWORD}@10.0.0.2/app"`, "", `10: hosts[1].dsn: missing; expected how to reach`},
		{"empty DSN", `"postgres://app:${PG_B_PASSWORD}@10.0.0.2/app"`, `""`, `10: hosts[1].dsn: empty; expected how to reach`},
		{"empty replica", "replicas: []", `replicas: [a, ""]`, `9: hosts[0].replicas[1]: empty; expected how to reach`},
		{"NUL in a DSN", "10.0.0.2", `\0`, `10: hosts[1].dsn: bytes that are not text; expected text in UTF-8`},
		{"weight of 0", "weight: 1", "weight: 0", `9: hosts[0].weight: 0; expected a whole number, 1 or more`},
		{"unknown host", "host: pg-b", "host: pg-c", `13: placement[1].host: "pg-c"; expected one of the hosts pg-a, pg-b`},
		{"no host", ", host: pg-b", "", `13: placement[1].host: missing; expected one of the hosts pg-a, pg-b`},
		{"placement of nothing", "shards: 1024-2047", `shards: ""`, `13: placement[1].shards: none; expected shards such as 0-1023`},
		{"placement without shards", "shards: 1024-2047, ", "", `13: placement[1].shards: none; expected shards such as 0-1023`},
		{"shard past the count", "1024-2047", "1024-2048", `13: placement[1].shards: shard 2048; expected 0 to 2047, since shards is 2048`},
		{"shard past any layout", "1024-2047", "1024-65536", `13: placement[1].shards: "1024-65536"; expected shards from 0 to 65535`},
		{"overlapping ranges", "1024-2047", "1023-2047", `13: placement[1].shards: shard 1023, which placement[0] puts on pg-a already; expected each shard once`},
		{"gap", "1024-2047", "1030-2047", `11: placement: no host for 6 shards, the first of them 1024; expected a host for each shard from 0 to 2047`},
		{"empty schema in search_path", "search_path: []", `search_path: [a, ""]`, `15: search_path[1]: empty; expected the name of a schema`},
		{"shard's schema in shared", "search_path: []", "shared: [app, shard_00001]", `15: shared[1]: "shard_00001"; expected the name of a schema, once, that is neither`},
		{"Kiloshard's schema in shared", "search_path: []", "shared: [kiloshard]", `15: shared[0]: "kiloshard"`},
		{"schema twice in shared", "search_path: []", "shared: [app, app]", `15: shared[1]: "app"`},
		{"extension without a name", "search_path: []", "extensions: [{schema: ext}]", `15: extensions[0]: missing; expected the name of an extension, such as citext`},
		{"extension twice", "search_path: []", "extensions: [citext, {name: citext, schema: ext}]", `15: extensions[1]: "citext" a second time; expected each extension once`},
		{"extension in a shard", "search_path: []", "extensions: [{name: citext, schema: shard_00001}]", `15: extensions[0].schema: "shard_00001"; expected the name of a schema that is neither a shard's`},
		{"version that is a number", "search_path: []", "extensions: [{name: citext, version: 1.6}]", `15: extensions[0].version: a number; expected a version, such as "1.6"; in quotes`},
		{"extension that is a number", "search_path: []", "extensions: [7]", `15: extensions[0]: a number; expected the name of an extension`},
		{"long schema in search_path", "search_path: []", "search_path: [" + strings.Repeat("s", 64) + "]", `15: search_path[0]: "sss`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(document, test.old, test.new, 1)
			if text == document {
				t.Fatalf("bug: no %q in the document", test.old)
			}
			if err := refused(t, text); !strings.HasPrefix(err.Error(), "kiloshard.yaml:"+test.err) {
				t.Fatalf("got      %v\nexpected kiloshard.yaml:%s", err, test.err)
			}
		})
	}
}

// Only a config made in Go can have these errors.
func TestCheckOfConfigMadeInGo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*shards.Config)
		err    string
	}{
		{"empty", func(c *shards.Config) { *c = shards.Config{} }, "cluster: missing"},
		{"no hosts", func(c *shards.Config) { c.Hosts = nil }, "hosts: none"},
		{"no placement", func(c *shards.Config) { c.Placement = nil }, "placement: no host for 8 shards, the first of them 0"},
		{"negative shards", func(c *shards.Config) { c.Shards = -1 }, "shards: -1; expected 1 to 8192"},
		{"negative weight", func(c *shards.Config) { c.Hosts[0].Weight = -1 }, "hosts[0].weight: -1; expected 1 or more"},
		{"empty replica", func(c *shards.Config) { c.Hosts[1].Replicas = []string{""} }, "hosts[1].replicas[0]: empty"},
		{"a negative shard", func(c *shards.Config) { c.Placement[0].Shards = shards.SetOf(-1) }, "placement[0].shards: none"},
		{"a DSN that is no text", func(c *shards.Config) { c.Hosts[1].DSN = "hunter2\xff" }, "hosts[1].dsn: bytes that are not text"},
		{"a directory that is no text", func(c *shards.Config) { c.Migrations = "\xff" }, "migrations: bytes that are not text"},
		{"a DSN as a host's name", func(c *shards.Config) { c.Hosts[1].Name = "postgres://app:hunter2@pg/app" }, "hosts[1].name: something that looks like a DSN; expected"},
		{"a DSN as a placement's host", func(c *shards.Config) { c.Placement[1].Host = "password=hunter2" }, "placement[1].host: something that looks like a DSN; expected"},
		{"an epoch past the year 5000", func(c *shards.Config) { c.Epoch = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "epoch: 10000-01-01T00:00:00Z; expected a year"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newConfig(8)
			test.change(&c)
			m, err := c.Map()
			if m != nil || err == nil || !strings.HasPrefix(err.Error(), test.err) {
				t.Fatalf("got %v, expected %s", err, test.err)
			}
			if _, err := c.YAML(); err == nil {
				t.Error("YAML wrote what Map refuses")
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}
