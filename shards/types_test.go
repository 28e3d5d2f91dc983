package shards_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

func TestTypes(t *testing.T) {
	t.Parallel()
	const written = document + "types:\n  - {name: board, number: 0}\n  - {name: pin, number: 1}\n"
	c := parse(t, written)
	if want := []shards.ObjectType{{Name: "board"}, {Name: "pin", Number: 1}}; !reflect.DeepEqual(c.Types, want) {
		t.Errorf("got %v, expected %v", c.Types, want)
	}
	text, err := c.YAML()
	if err != nil || !strings.HasSuffix(string(text), "types:\n  - {name: board, number: 0}\n  - {name: pin, number: 1}\n") {
		t.Errorf("%v\n%s", err, text)
	}

	if template := shards.Template(shards.Config{}); !strings.Contains(string(template), "# types:\n#   - {name: pin, number: 1}\n") {
		t.Errorf("a new config does not show types:\n%s", template)
	}
	for types, want := range map[string]string{
		"[{name: pin, number: 1024}]":                        "types[0].number: 1024; expected 0 to 1023",
		"[{name: Pin, number: 1}]":                           `types[0].name: "Pin"`,
		"[{name: pin, number: 1}, {name: pin, number: 2}]":   "types[1]: {name: pin, number: 2}, beside {name: pin, number: 1}",
		"[{name: pin, number: 1}, {name: board, number: 1}]": "expected each name and each number once",
		"[{name: pin, number: -1}]":                          "types[0].number",
		"[pin]":                                              "types[0]",
	} {
		if _, err := shards.Parse("kiloshard.yaml", []byte(document+"types: "+types+"\n"), environment); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", types, err, want)
		}
	}
}

// Python: int(hashlib.md5(key).hexdigest(), 16) % of.
func TestMD5Shard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key  string
		of   int
		want shards.Number
	}{
		{"1.2.3.4", 4096, 1537},
		{"1.2.3.4\n", 4096, 1524}, // as the article prints
		{"\xff\x00", 4096, 972},
		{"1.2.3.4", 1, 0},
	} {
		if got := shards.MD5Shard([]byte(c.key), c.of); got != c.want {
			t.Errorf("%q of %d: shard %d, expected %d", c.key, c.of, got, c.want)
		}
	}
}
