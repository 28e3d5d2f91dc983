package tables_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards/tables"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"users.id":            {"users", "id"},
		`Users."Id"`:          {"users", "Id"},
		`"a.b"."c""d".e`:      {"a.b", `c"d`, "e"},
		`"Old Data"."Ta""b"`:  {"Old Data", `Ta"b`},
		"":                    nil,
		"users.":              nil,
		".id":                 nil,
		`"users`:              nil,
		`"us"ers.id`:          nil,
		`us"ers".id`:          nil,
		`"".id`:               nil,
		"a..b":                nil,
		"\"with\x00zero\".id": nil,
	} {
		got, err := tables.Split(text)
		if (err == nil) != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v, expected %q", text, got, err, want)
		}
	}
}

// TestNamesAreReadBack holds that any name that Postgres can have is read as it was written.
func TestNamesAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[^\x00]+`)
		want := tables.Name{Schema: part.Draw(t, "schema"), Table: part.Draw(t, "table")}
		if got, err := tables.ParseName(want.String()); err != nil || got != want {
			t.Fatalf("%s: got %q, %v, expected %q", want, got, err, want)
		}
	})
}
