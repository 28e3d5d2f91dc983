package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/demo"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// masks are what differs from one run to the next: addresses, times, numbers, and how wide columns are.
var masks = []struct {
	varies *regexp.Regexp
	as     string
}{
	{regexp.MustCompile(`\S+:\d+/\S+`), "ADDRESS"},
	{regexp.MustCompile(`just now|\d+ \w+ ago`), "AGO"},
	{regexp.MustCompile(`fsync (on|off)`), "fsync"},
	{regexp.MustCompile(`\d[\d.,:TZ-]*((µs|ms|s)\b)?`), "#"},
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

// unprinted returns the first line of a quote that is not printed, or not after the one before it; empty if there is none.
func unprinted(quote, printed string) string {
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

// quotes checks that standard output has what a page quotes of a command: quotes $PAGES/README.md 'kiloshard bench ids'
func quotes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: quotes PAGE COMMAND")
	}
	page, err := os.ReadFile(args[0])
	ts.Check(err)
	found := regexp.MustCompile(`(?m)^\$ ` + regexp.QuoteMeta(args[1]) + `.*\n((?:[^$\n` + "`" + `].*\n|\n)+)`).FindSubmatch(page)
	if found == nil {
		ts.Fatalf("%s quotes nothing of %s", args[0], args[1])
	}
	printed := masked(ts.ReadFile("stdout"))
	for _, line := range masked(string(found[1])) {
		if !slices.Contains(printed, line) { // in any order: a test measures less than the page
			ts.Fatalf("%s quotes of %s what is not printed there: %s", args[0], args[1], line)
		}
	}
}

// TestDemoOfReadme runs the demo, with fewer shards and users, and holds that it prints what the README quotes of it. User 31341
// and the photo that is taken apart are on pg-b with these, too.
func TestDemoOfReadme(t *testing.T) {
	t.Parallel()
	hosts := shardtest.Hosts(t, 2)
	var out bytes.Buffer
	d := &demo.Story{
		Execute: execute,
		App:     &cli.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard},
		Shards:  16, Users: 80, Started: time.Now(), Step: 1,
		Hosts: &demo.Hosts{DSNs: map[string]string{"PG_A_DSN": hosts[0].ConnString(), "PG_B_DSN": hosts[1].ConnString()}},
	}
	defer func() {
		if err := d.CleanUp(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, step := range d.Steps()[1:] { // the hosts are there
		if err := step(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
	}
	if line := unprinted(readme(t)[""][0], out.String()); line != "" {
		t.Errorf("the README quotes of the demo what it does not print: %s\nit prints\n%s", line, &out)
	}
}

// TestTargetsOfPages holds that the Makefile has each target that the pages name, and that make demo runs the demo.
func TestTargetsOfPages(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"../../README.md", "../../CONTRIBUTING.md", "../../bench/README.md", "../../router/example/README.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z]+)\\b").FindAllSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + string(m[1]) + `:`).Match(makefile) {
				t.Errorf("%s: make %s: the Makefile has no such target", page, m[1])
			}
		}
	}
	for target, runs := range map[string]string{"demo": "go run ./cmd/kiloshard demo", "test": "test-libraries test-programs"} {
		if !regexp.MustCompile(`(?m)^` + target + `:.*\n(\t.*\n)*\t.*` + regexp.QuoteMeta(runs)).Match(makefile) {
			t.Errorf("make %s: expected it to run %s", target, runs)
		}
		if !strings.Contains(readme(t)["sh"][0], "make "+target+" ") {
			t.Errorf("the README does not begin with make %s", target)
		}
	}
}
