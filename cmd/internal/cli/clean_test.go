package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/cmd/internal/progress"
)

// TestNoControlCharacters prints what a hostile server may have said, in a table, in a line and in an error.
func TestNoControlCharacters(t *testing.T) {
	t.Parallel()
	const hostile = "x\x1b[2J\x07\u009b1m\u202ey\r\x00"
	var out bytes.Buffer
	a := &App{Stdout: cleaned{&out, newReader()}, Stderr: cleaned{&out, newReader()}, Output: Table, Lookup: func(string) (string, bool) { return "", false }}
	a.Table([][]string{{"HEAD"}, {hostile}})
	a.Say("%s", hostile)
	a.Warn("%s", hostile)
	a.Warn("warning: %s", hostile)
	a.Exit(a.NewRoot("kiloshard", ""), errors.New(hostile))
	lines := progress.Lines("creating", a.Stderr)
	lines.Begin(hostile, 1)
	lines.End()
	a.Output = JSON
	if err := a.Print(map[string]string{"key": hostile}, nil); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.ContainsAny(text, "\x1b\x07\u009b\u202e\r\x00") || strings.Count(text, `x\u001b[2J`) != 7 {
		t.Errorf("printed %q", text)
	}
	if got := Clean("two\n\tlines of ünïcode…"); got != "two\n\tlines of ünïcode…" {
		t.Errorf("got %q", got)
	}
}
