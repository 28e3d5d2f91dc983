package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

// A table is cut to the width of the terminal, in the columns that may be; for a file it is not cut. Sentences are broken between words.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		columns string
		widest  int
		want    string
	}{
		{"40", 40, "pg-a  127.0.0.1:3…  down    1,024"},
		{"80", 80, "pg-a  127.0.0.1:32859/photos_of_a_cluster  down    1,024"},
		{"", 100, "pg-a  127.0.0.1:32859/photos_of_a_cluster  down    1,024"},
	} {
		t.Run(test.columns, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			a := &App{Stdout: cleaned{&out, newReader()}, Output: Table, Lookup: func(name string) (string, bool) { return test.columns, name == "COLUMNS" && test.columns != "" }}
			a.Table([][]string{{"HOST", "~ADDRESS", "!STATE", ">SHARDS", "~EMPTY"}, {"pg-a", "127.0.0.1:32859/photos_of_a_cluster", "down", "1,024", ""}})
			a.Say("%s", strings.Repeat("shards ", 14))
			if !strings.Contains(out.String(), "\n"+test.want+"\n") {
				t.Errorf("no %q in:\n%s", test.want, out.String())
			}
			for line := range strings.Lines(out.String()) {
				if width := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); width > test.widest {
					t.Errorf("%d columns: %q", width, line)
				}
			}
		})
	}
}

// A host that is down is red where that can be seen, and nowhere else.
func TestDownIsRed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, variable string
		red            bool
	}{{"a file", "NONE", false}, {"forced", "CLICOLOR_FORCE", true}, {"no colour", "NO_COLOR", false}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			a := &App{Stdout: cleaned{&out, newReader()}, Output: Table, Lookup: func(name string) (string, bool) {
				return strings.Repeat("1", strings.Count(name, test.variable)), name == test.variable
			}}
			a.Table([][]string{{"HOST", "!STATE"}, {"pg-a", "up"}, {"pg-b", "down"}})
			if got := strings.Contains(out.String(), "pg-b  \x1b[31mdown\x1b[0m\n"); got != test.red || strings.Count(out.String(), "\x1b[31m") > 1 {
				t.Errorf("red is %v, expected %v: %q", got, test.red, out.String())
			}
		})
	}
}
