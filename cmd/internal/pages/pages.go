// Package pages compares what pages quote of commands with what these print. It is for tests.
package pages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// masks are what differs from one run to the next: addresses, times, numbers, and how wide columns are.
var masks = []struct {
	varies *regexp.Regexp
	as     string
}{
	{regexp.MustCompile(`\S+:\d+/\S+`), "ADDRESS"},
	{regexp.MustCompile(`just now|\d+ \w+ ago`), "AGO"},
	{regexp.MustCompile(`fsync (on|off)`), "fsync"},
	{regexp.MustCompile(`\b(postgres|etcd) `), "STORE "},
	{regexp.MustCompile(`(begin|commit|(insert|update|delete|select) \w+), (old|new)\b`), "STATEMENT"},
	{regexp.MustCompile(`(\B-)?\d[\d.,:TZ-]*((µs|ms|s)\b)?`), "#"},
	{regexp.MustCompile(`\s+`), " "},
}

// masked returns the lines of a text, but empty ones, without what differs from one run to the next.
func masked(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		for _, m := range masks {
			line = m.varies.ReplaceAllString(line, m.as)
		}
		lines = append(lines, line)
	}
	return lines
}

// Unprinted returns the first line of a quote that is not printed, or not after the one before it; empty if there is none.
func Unprinted(quote, printed string) string {
	rest := masked(printed)
	for _, line := range masked(quote) {
		i := slices.Index(rest, line)
		if i < 0 {
			return line
		}
		rest = rest[i+1:]
	}
	return ""
}

// Missing returns an error for the first line of what a page quotes of a command that is not printed. Any order will do,
// since a test measures less than the page.
func Missing(page []byte, command, printed string) error {
	found := regexp.MustCompile(`(?m)^\$ ` + regexp.QuoteMeta(command) + `.*\n((?:[^$\n` + "`" + `].*\n|\n)+)`).FindSubmatch(page)
	if found == nil {
		return fmt.Errorf("the page quotes nothing of %s", command)
	}
	there := masked(printed)
	for _, line := range masked(string(found[1])) {
		if !slices.Contains(there, line) {
			return fmt.Errorf("the page quotes of %s what is not printed there: %s", command, line)
		}
	}
	return nil
}
