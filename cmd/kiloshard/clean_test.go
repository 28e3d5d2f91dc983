package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestNoControlCharacters prints what a hostile server may have said, in a table, in a line and in an error.
func TestNoControlCharacters(t *testing.T) {
	t.Parallel()
	const hostile = "x\x1b[2J\x07\u009b1m\u202ey\r\x00"
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out, output: outputTable}
	a.table([][]string{{"HEAD"}, {hostile}})
	a.say("%s", hostile)
	if text := out.String(); strings.ContainsAny(text, "\x1b\x07\u009b\u202e\r\x00") || strings.Count(text, `x\u001b[2J`) != 2 {
		t.Errorf("printed %q", text)
	}
	if got := clean("two\n\tlines of ünïcode…"); got != "two\n\tlines of ünïcode…" {
		t.Errorf("got %q", got)
	}
}
