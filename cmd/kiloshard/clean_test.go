package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/progress"
)

// TestNoControlCharacters prints what a hostile server may have said, in a table, in a line and in an error.
func TestNoControlCharacters(t *testing.T) {
	t.Parallel()
	const hostile = "x\x1b[2J\x07\u009b1m\u202ey\r\x00"
	var out bytes.Buffer
	a := &app{stdout: cleaned{&out}, stderr: cleaned{&out}, output: outputTable, lookup: func(string) (string, bool) { return "", false }}
	a.table([][]string{{"HEAD"}, {hostile}})
	a.say("%s", hostile)
	a.warn("%s", hostile)
	a.warn("warning: %s", hostile)
	a.exit(errors.New(hostile))
	lines := progress.Lines("creating", a.stderr)
	lines.Begin(hostile, 1)
	lines.End()
	a.output = outputJSON
	if err := a.print(map[string]string{"key": hostile}, nil); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.ContainsAny(text, "\x1b\x07\u009b\u202e\r\x00") || strings.Count(text, `x\u001b[2J`) != 7 {
		t.Errorf("printed %q", text)
	}
	if got := clean("two\n\tlines of ünïcode…"); got != "two\n\tlines of ünïcode…" {
		t.Errorf("got %q", got)
	}
}
