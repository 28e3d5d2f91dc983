package migrate_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
)

func TestNewFileName(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files []string
		title string
		want  string
		err   string
	}{
		{"the first", nil, "users", "001_users.sql", ""},
		{"the next", []string{"001_a.sql", "", "002_b.sql", "", "readme.md", ""}, "Add  Likes, to: photos!", "003_add_likes_to_photos.sql", ""},
		{"narrow", []string{"1_a.sql", ""}, "b", "2_b.sql", ""},
		{"wide", []string{"0001_a.sql", ""}, "É 2x", "0002_é_2x.sql", ""},
		{"no name", nil, " -/.. ", "", `name " -/.. ": expected letters or digits in it`},
		{"a gap", []string{"002_a.sql", ""}, "b", "", "migration 002_a.sql: no file has the number 1: expected numbers without a gap"},
	}
	for _, test := range tests {
		got, err := migrate.NewFileName(files(test.files...), test.title)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if got != test.want || message != test.err {
			t.Errorf("%s: got %s and error %q, want %s and %q", test.name, got, message, test.want, test.err)
		}
	}
}
