package entities_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/router/entities"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := entities.Parse([]byte(`shards: 4
indexes:
  - name: index_user_id
    properties: [{name: user_id, type: text}, {name: published, type: int}]
  - name: index_link
    properties: [{name: link, type: text}]
  - name: index_email
    properties: [{name: email, type: text}]
    unique: true
  - name: index_public
    properties: [{name: score, type: float}]
    where: {public: true}
`))
	if err != nil || !reflect.DeepEqual(got, definition) {
		t.Errorf("got %+v, %v, expected %+v", got, err, definition)
	}
	const index = "shards: 4\nindexes: "
	for text, want := range map[string]string{
		"shards: 0": "shards: 0", "shards: 4\nindex: 3": "unknown field", "shards: 4\ncompression: zip": "compression",
		index + "[{name: A, properties: [{name: a, type: text}]}]": `indexes[0].name: "A"`,
		index + "[{name: a}]": "indexes[0].properties: none",
		index + "[{name: a, properties: [{name: entity_id, type: text}]}]":                            "entity_id",
		index + "[{name: a, properties: [{name: a, type: varchar}]}]":                                 "text, int, float, bool or time",
		index + "[{name: a, properties: [{name: a, type: int}, {name: a, type: int}]}]":               "each property once",
		index + "[{name: a, properties: [{name: a, type: int}]}, {name: a, properties: [{name: b}]}]": "each name once",
		index + "[{name: a, properties: [{name: a, type: int}], where: {b: [1]}}]":                    "where.b",
		index + "[{name: a, properties: [{name: a-b, type: int}]}]":                                   "with a point between the names of a path",
		index + "[{name: a, properties: [{name: a, type: int}, {name: b, type: int, each: true}]}]":   "the first property",
		index + "[{name: entity_work, properties: [{name: a, type: int}]}]":                           "not the name of another table",
	} {
		if _, err := entities.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", text, err, want)
		}
	}
}
