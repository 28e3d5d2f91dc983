package rows_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// dump returns the structure of schema public, as pg_dump writes it.
func (b *bundle) dump() string {
	b.t.Helper()
	out, err := exec.CommandContext(b.t.Context(), "pg_dump", "--schema-only", "--schema=public", "-d", b.host.ConnString()).Output()
	if err != nil {
		b.t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^\\(un)?restrict .*$`).ReplaceAllString(string(out), "") // a random word
}

// difference names the lines that only one text has.
func difference(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	return fmt.Sprintf("only before %q, only after %q", without(was, is), without(is, was))
}
