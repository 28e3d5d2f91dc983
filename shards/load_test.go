package shards_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

func parse(t *testing.T, text string) shards.Config {
	t.Helper()
	c, err := shards.Parse("kiloshard.yaml", []byte(text), environment)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParse(t *testing.T) {
	t.Parallel()
	c := parse(t, document)
	if c.Cluster != "photos" || c.Shards != 2048 || c.SchemaPrefix != "shard_" || c.Layout != shards.DefaultLayout {
		t.Errorf("got %+v", c)
	}
	if c.Strategy.By != "modulo" || c.Store.Kind != "file" || c.Migrations != "./migrations" || c.SearchPath != nil {
		t.Errorf("got %+v", c)
	}
	if c.Epoch != epoch {
		t.Errorf("got epoch %v", c.Epoch)
	}
	if len(c.Hosts) != 2 || c.Hosts[1].Name != "pg-b" || c.Hosts[1].Weight != 1 || c.Hosts[0].Replicas != nil {
		t.Errorf("got hosts %v", c.Hosts)
	}
	if len(c.Placement) != 2 || c.Placement[1].Shards.String() != "1024-2047" || c.Placement[1].Host != "pg-b" {
		t.Errorf("got placement %v", c.Placement)
	}
}

// Each test replaces a part of document.
func TestParseForms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		old, new string
		ok       func(shards.Config) bool
	}{
		{"as it is", "", "", func(c shards.Config) bool { return true }},
		{"byte order mark", "cluster", "\ufeffcluster", func(c shards.Config) bool { return c.Cluster == "photos" }},
		{"carriage returns", "photos\n", "photos\r\n", func(c shards.Config) bool { return c.Cluster == "photos" }},
		{"marks of a document", "cluster", "%YAML 1.2\n---\ncluster", func(c shards.Config) bool { return c.Cluster == "photos" }},
		{"epoch with an offset", "00:00:00Z", "02:00:00+02:00", func(c shards.Config) bool { return c.Epoch == epoch }},
		{"epoch with a fraction", "00:00:00Z", "00:00:00.125Z", func(c shards.Config) bool { return c.Epoch == epoch.Add(125*time.Millisecond) }},
		{"epoch as a day", "T00:00:00Z", "", func(c shards.Config) bool { return c.Epoch == epoch }},
		{"epoch in quotes", "2026-01-01T00:00:00Z", `"2026-01-01"`, func(c shards.Config) bool { return c.Epoch == epoch }},
		{"no optional fields", document[strings.Index(document, "migrations"):], "", func(c shards.Config) bool { return c.Migrations == "" && c.MigrationsDir() == "" }},
		{"fields without a value", "{time: 41, shard: 13, sequence: 10}", "", func(c shards.Config) bool { return c.Layout == shards.DefaultLayout }},
		{"no field of the layout", "{time: 41, shard: 13, sequence: 10}", "{}", func(c shards.Config) bool { return c.Layout == shards.DefaultLayout }},
		{"a type", "{time: 41, shard: 13, sequence: 10}", "{time: 40, shard: 13, type: 2, sequence: 8}", func(c shards.Config) bool {
			return c.Layout == shards.Layout{Time: 40, Shard: 13, Type: 2, Sequence: 8}
		}},
		{"no type", "{time: 41, shard: 13, sequence: 10}", "{time: 41, shard: 13, type: 0, sequence: 10}", func(c shards.Config) bool { return c.Layout == shards.DefaultLayout }},
		{"no time", "{time: 41, shard: 13, sequence: 10}", "{time: 0, shard: 16, type: 10, sequence: 36}", func(c shards.Config) bool {
			return c.Layout == shards.Layout{Shard: 16, Type: 10, Sequence: 36}
		}},
		{"no time and no epoch", "epoch: 2026-01-01T00:00:00Z\nlayout: {time: 41, shard: 13, sequence: 10}", "layout: {time: 0, shard: 13, sequence: 48}", func(c shards.Config) bool {
			return c.Epoch.IsZero() && c.Layout == shards.Layout{Shard: 13, Sequence: 48}
		}},
		{"block style", "{by: modulo}", "\n  by: modulo", func(c shards.Config) bool { return c.Strategy.By == "modulo" }},
		{"text in block style", "photos", "|-\n  photos", func(c shards.Config) bool { return c.Cluster == "photos" }},
		{"one shard as a number", "0-1023, host: pg-a}", "7, host: pg-a}\n  - {shards: \"0-6,8-1023\", host: pg-b}", func(c shards.Config) bool {
			return c.Placement[0].Shards.String() == "7" && c.Placement[1].Shards.String() == "0-6,8-1023"
		}},
		{"replicas", "replicas: []", `replicas: ["host=a", "host=${PG_HOST}"]`, func(c shards.Config) bool {
			texts := c.Hosts[0].ReplicaConnStrings()
			return len(texts) == 2 && texts[0] == "host=a" && texts[1] == "host=10.0.0.3" && c.Hosts[0].Replicas[1] == "host=${PG_HOST}"
		}},
		{"alias", "photos", "&name photos\nsearch_path: [*name]", nil},
		{"alias of a value", "search_path: []", "search_path: [&a extensions, *a]", func(c shards.Config) bool {
			return len(c.SearchPath) == 2 && c.SearchPath[1] == "extensions"
		}},
		{"merge key", "- {name: pg-b,", "- {<<: {weight: 3, name: x}, name: pg-b,", func(c shards.Config) bool {
			return c.Hosts[1].Weight == 3 && c.Hosts[1].Name == "pg-b"
		}},
		{"merge of aliases", "weight: 1}\n  - {name: pg-b,", "weight: &w 4}\n  - {<<: [{weight: *w}, {weight: 5}], name: pg-b,", func(c shards.Config) bool {
			return c.Hosts[1].Weight == 4
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(document, test.old, test.new, 1)
			if test.ok == nil { // the document has the field already
				text = strings.Replace(text, "search_path: []\n", "", 1)
				test.ok = func(c shards.Config) bool { return c.SearchPath[0] == c.Cluster }
			}
			if c := parse(t, text); !test.ok(c) {
				t.Fatalf("got %+v", c)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const all = "cluster, version, shards, schema_prefix, epoch, layout, strategy, store, hosts, placement, migrations, search_path, shared, extensions"
	replaced := func(old, new string) string { return strings.Replace(document, old, new, 1) }
	tests := []struct {
		name string
		text string
		err  string
	}{
		{"empty", "", "1: cluster: missing"},
		{"only comments", "# nothing\n\n# here\n", "1: cluster: missing"},
		{"text", "photos", "1: text; expected fields among " + all},
		{"list", "\n- a\n", "2: a list; expected fields among " + all},
		{"two documents", document + "---\n" + document, "17: a second document; expected one YAML document"},
		{"unknown field", document + "colour: red\n", `16: unknown field "colour"; expected one of ` + all},
		{"unknown field of a host", replaced("weight: 1", "wait: 1"), `9: hosts[0]: unknown field "wait"; expected one of name, dsn, direct, replicas, weight`},
		{"DSN as a field", replaced("name: pg-b, dsn: \"", "name: pg-b, \"dsn: "), "10: hosts[1]: unknown field something that looks like a DSN; expected"},
		{"shards with a comma, not in quotes", replaced("0-1023", "0-9,10-1023"), `12: placement[0]: unknown field "10-1023"; expected one of shards, host; a list of shards with a comma stands in quotes, such as "0-9,77"`},
		{"field twice", document + "cluster: other\n", `16: field "cluster" a second time; expected each field once`},
		{"host's field twice", replaced("weight: 1", "weight: 1, name: c"), `9: hosts[0]: field "name" a second time; expected each field once`},
		{"number as a name", replaced("photos", "123"), `1: cluster: a number; expected a name of letters, digits, '.', '_' and '-'; in quotes, since YAML takes this for a number`},
		{"true as a name", replaced("pg-b, dsn", "true, dsn"), "10: hosts[1].name: true or false; expected a name"},
		{"list as a name", replaced("photos", "[photos]"), "1: cluster: a list; expected a name"},
		{"text as a number", replaced("2048\n", "many\n"), `2: shards: the text "many"; expected a whole number, 1 or more`},
		{"number in quotes", replaced("2048\n", "\"2048\"\n"), `2: shards: the text "2048"; expected a whole number, 1 or more`},
		{"fraction", replaced("2048\n", "2048.5\n"), "2: shards: a number; expected a whole number, 1 or more"},
		{"negative", replaced("2048\n", "-5\n"), "2: shards: -5; expected a whole number, 1 or more"},
		{"too large", replaced("2048\n", "99999999999\n"), "2: shards: 99999999999; expected a whole number, 1 or more"},
		{"number as a layout", replaced("{time: 41, shard: 13, sequence: 10}", "41"), "5: layout: a number; expected fields among time, shard, type, sequence"},
		{"mapping as hosts", "hosts:\n  pg-a: {dsn: x}\n", "2: hosts: a mapping; expected a list of hosts"},
		{"host without a value", replaced("  - {name: pg-b", "  -\n  - {name: pg-b"), "10: hosts[1]: nothing; expected fields among name, dsn, direct, replicas, weight"},
		{"list of shards", replaced("0-1023", "[0-1023]"), `12: placement[0].shards: a list; expected shards such as 7, 0-1023 or "0-9,77"`},
		{"bad shards", replaced("0-1023", "0..1023"), `12: placement[0].shards: "0..1023"; expected a shard or a range of shards, such as 7 or 0-9`},
		{"epoch as a year", replaced("2026-01-01T00:00:00Z", "2026"), "4: epoch: a number; expected a time such as 2026-01-01T00:00:00Z, or a day such as 2026-01-01"},
		{"epoch without a zone", replaced("00:00Z", "00:00"), `4: epoch: "2026-01-01T00:00:00"; expected a time`},
		{"tag", replaced("photos", "!!str photos"), "1: cluster: a YAML tag; expected a name"},
		{"alias of nothing", replaced("photos", "*name"), "1: cluster: an alias; expected one whose anchor is in the document, once"},
		{"alias of two", replaced("search_path: []", "search_path: [&a b, &a c, *a]"), "15: search_path[2]: an alias; expected one whose anchor is in the document, once"},
		{"alias of itself", "<<: &a {<<: *a}\n", "1: aliases that expand to too many values"},
		{"merge of text", "<<: x\n", "1: text; expected fields among " + all},
		{"merge of a list of text", "<<: [x]\n", "1: text; expected fields among " + all},
		{"merge of nothing", "<<: [*a]\n", "1: an alias; expected one whose anchor"},
		{"field twice in what is merged", "<<: {shards: 1, shards: 2}\n", `1: field "shards" a second time`},
		{"mapping as a key", "{a: b}: c\n", "1: "},
		{"broken", replaced("[]", "["), "9: broken YAML"},
		{"tab", replaced("  - {name: pg-b", "\t- {name: pg-b"), "10: broken YAML"},
		{"bytes that are not UTF-8", replaced("modulo", "\xff"), "6: bytes that are not UTF-8; expected a YAML document in UTF-8"},
		{"too deep", "cluster: " + strings.Repeat("[", 50_000), "1: lists or mappings nested too deeply"},
		{"too deep in block style", "hosts:\n" + strings.Repeat("- ", 50_000), "2: lists or mappings nested too deeply"},
		{"too large a document", strings.Repeat("# comment\n", 1<<20/10+1), "1: more than 1 MiB; expected a config of 1 MiB at most"},
		{"alias bomb", bomb(), "2: hosts["},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := refused(t, test.text)
			if !strings.HasPrefix(err.Error(), "kiloshard.yaml:"+test.err) {
				t.Fatalf("got      %v\nexpected kiloshard.yaml:%s", err, test.err)
			}
			for _, goes := range []string{"Go ", "ast.", "string into", "struct", "unmarshal", "hunter2", "10.0.0."} {
				if strings.Contains(err.Error(), goes) {
					t.Errorf("the error shows %q: %v", goes, err)
				}
			}
		})
	}
}

// bomb is a document of less than 1 MiB that stands for 9 million replicas.
func bomb() string {
	many := strings.Repeat("x,", 1_000)
	return "hosts:\n  - &h {name: a, dsn: x, replicas: &r [" + many + "]}\n" + strings.Repeat("  - *h\n", 1_000)
}

func TestParseWithoutVariables(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		old  string
		new  string
		err  string
	}{
		{"first", "PG_A_PASSWORD", "NOT_THERE", "9: hosts[0].dsn: variable NOT_THERE is not set; expected a value for it in the environment"},
		{"in a replica", "replicas: []", "replicas: [x, '${NOT_THERE}']", "9: hosts[0].replicas[1]: variable NOT_THERE is not set; expected a value"},
		{"no name", "${PG_B_PASSWORD}", "${}", "10: hosts[1].dsn: a ${ that names no variable; expected ${NAME}"},
		{"odd name", "${PG_B_PASSWORD}", "${PG-B}", "10: hosts[1].dsn: a ${ that names no variable"},
		{"not closed", "${PG_B_PASSWORD}", "${PG_B_PASSWORD", "10: hosts[1].dsn: a ${ that names no variable"},
		{"empty as a whole", "postgres://app:${PG_B_PASSWORD}@10.0.0.2/app", "${EMPTY}", "10: hosts[1].dsn: empty once its variables are filled in; expected how to reach"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := refused(t, strings.Replace(document, test.old, test.new, 1))
			if !strings.HasPrefix(err.Error(), "kiloshard.yaml:"+test.err) {
				t.Fatalf("got      %v\nexpected kiloshard.yaml:%s", err, test.err)
			}
		})
	}
	if _, err := shards.Parse("k.yaml", []byte(document), nil); err == nil || !strings.Contains(err.Error(), "k.yaml:9: hosts[0].dsn: variable PG_A_PASSWORD is not set") {
		t.Errorf("without a lookup: got %v", err)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "kiloshard.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(document)
	c, err := shards.Load(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	if c.MigrationsDir() != filepath.Join(dir, "migrations") || c.Migrations != "./migrations" {
		t.Errorf("got migrations in %q, written %q", c.MigrationsDir(), c.Migrations)
	}
	m, err := c.Map()
	if err != nil || m.Config().MigrationsDir() != c.MigrationsDir() {
		t.Errorf("the map's config has migrations in %q, %v", m.Config().MigrationsDir(), err)
	}
	text, err := c.YAML()
	if err != nil || strings.Contains(string(text), dir) || !strings.Contains(string(text), "\nmigrations: ./migrations\n") {
		t.Errorf("written back as %s, %v", text, err)
	}

	write(strings.Replace(document, "./migrations", "/srv/migrations", 1))
	if c, err := shards.Load(path, environment); err != nil || c.MigrationsDir() != "/srv/migrations" {
		t.Errorf("got migrations in %q, %v", c.MigrationsDir(), err)
	}

	write(strings.Repeat("#\n", 1<<20))
	var tooLarge *shards.FieldError
	if _, err := shards.Load(path, environment); !errors.As(err, &tooLarge) || tooLarge.Found != "more than 1 MiB" || tooLarge.File != path {
		t.Errorf("of 2 MiB: got %v", err)
	}
	if _, err := shards.Load(filepath.Join(dir, "other.yaml"), environment); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: got %v, expected fs.ErrNotExist", err)
	}
	if _, err := shards.Load(dir, environment); err == nil {
		t.Error("read a directory")
	}
}
