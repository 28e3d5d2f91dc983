package configfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
)

// degrees is a type with a form of its own.
type degrees int

type house struct {
	Name     string            `yaml:"name"`
	Late     bool              `yaml:"late,last,omitempty"`
	Floors   int               `yaml:"floors,omitempty"`
	Rooms    []room            `yaml:"rooms"`
	Notes    []string          `yaml:"notes,quoted"`
	Keys     map[string]string `yaml:"keys,omitempty"`
	Attic    *room             `yaml:"attic,omitempty"`
	Warmth   degrees           `yaml:"warmth,omitempty"`
	Internal int
}

type room struct {
	Name string `yaml:"name,short"`
	Size int64  `yaml:"size,zero,required"`
}

var format = configfile.Format{
	Scalars: []configfile.Scalar{configfile.ScalarOf("degrees such as 20C",
		func(text string, number bool) (degrees, error) {
			if number {
				return 0, errors.New("a number")
			}
			return degrees(len(text)), nil
		},
		func(d degrees) string { return strings.Repeat("C", int(d)) },
	)},
	Expected: func(field string) string {
		return map[string]string{"name": "a name", "rooms": "rooms", "rooms[0].name": "a room's name", "rooms[0]": "a room", "rooms[0].size": "its size", "notes": "notes"}[field]
	},
	Keys:   map[string][]string{"keys": {"front", "back"}},
	Advise: func(unknown string, _ []string) string { return "; not " + unknown },
}

func TestFormat(t *testing.T) {
	t.Parallel()
	const text = `name: "7"
floors: 2
rooms:
  - {name: hall, size: 0}
  - {name: a.b, size: 4000000000}
notes: ["warm"]
keys: {back: "x", front: "y"}
attic: {name: top, size: 1}
warmth: CC
late: true
`
	var h house
	lines, err := format.Decode([]byte(text), &h)
	if err != nil || h.Name != "7" || len(h.Rooms) != 2 || h.Rooms[1].Size != 4_000_000_000 || h.Keys["front"] != "y" || h.Attic.Name != "top" || h.Warmth != 2 || !h.Late {
		t.Fatalf("got %+v, %v", h, err)
	}
	for field, want := range map[string]int{"": 1, "rooms": 3, "rooms[1].size": 5, "rooms[1].colour": 5, "rooms[7]": 3, "cellar": 1, "late": 10} {
		if got := lines.Of(field); got != want {
			t.Errorf("%q is on line %d, expected %d", field, got, want)
		}
	}
	if got := string(configfile.Write(format.Fields(h), nil)); got != text {
		t.Errorf("got\n%s\nexpected\n%s", got, text)
	}
	if got := string(configfile.Write(format.Fields(h)[:2], map[string]string{"floors": "How many.\n\nNot the cellar."})); got != "name: \"7\"\n\n# How many.\n#\n# Not the cellar.\nfloors: 2\n" {
		t.Errorf("with a comment: got\n%s", got)
	}
	h = house{}
	if _, err := format.Decode([]byte("rooms: [hall]\nattic:\nnotes: []\n"), &h); err != nil || h.Rooms[0].Name != "hall" || h.Attic != nil || h.Notes == nil {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\ncolour: red":        `2 : unknown field "colour"; expected one of name, floors, rooms, notes, keys, attic, warmth, late; not colour`,
		"name: 7":              `1 name: a number; expected a name; in quotes, since YAML takes this for a number`,
		"name: ''":             `1 name: empty; expected a name`,
		"rooms: {}":            `1 rooms: a mapping; expected rooms`,
		"rooms:\n- {name: a}":  `2 rooms[0].size: missing; expected its size`,
		"rooms:\n- [a]":        `2 rooms[0]: a list; expected a room`,
		"rooms: [{size: -1}]":  `1 rooms[0].size: -1; expected a whole number, 0 or more`,
		"floors: 0":            `1 floors: 0; expected a whole number, 1 or more`,
		"floors: 4000000000":   `1 floors: 4000000000; expected a whole number, 1 or more`,
		"floors: two":          `1 floors: the text "two"; expected a whole number, 1 or more`,
		"late: 1":              `1 late: a number; expected true or false`,
		"warmth: [1]":          `1 warmth: a list; expected degrees such as 20C`,
		"warmth: 1":            `1 warmth: a number`,
		"keys: {side: x}":      `1 keys: unknown field "side"; expected one of front, back; not side`,
		"name: a\nname: b":     `2 : field "name" a second time; expected each field once`,
		"{name: a, x@y: hide}": `1 : unknown field something that looks like a DSN`,
	} {
		_, err := format.Decode([]byte(text), &house{})
		var e *configfile.Error
		if !errors.As(err, &e) || !strings.HasPrefix(string(rune('0'+e.Line))+" "+e.Error(), want) {
			t.Errorf("%q: got %v, expected %s", text, err, want)
		}
	}
}
