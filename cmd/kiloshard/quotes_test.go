package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/demo"
	"github.com/kiloshard/kiloshard/cmd/internal/pages"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// quotes checks that standard output has what a page quotes of a command: quotes $PAGES/README.md 'kiloshard-lab bench ids'
func quotes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: quotes PAGE COMMAND")
	}
	page, err := os.ReadFile(args[0])
	ts.Check(err)
	if err := pages.Missing(page, args[1], ts.ReadFile("stdout")); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
}

// TestDemoOfReadme runs the demo, with fewer shards and users, and holds that it prints what the README quotes of it. User 31341
// and the photo that is taken apart are on pg-b with these, too.
func TestDemoOfReadme(t *testing.T) {
	t.Parallel()
	hosts := shardtest.Hosts(t, 2)
	var out bytes.Buffer
	d := &demo.Story{
		App:    &cli.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard},
		Shards: 16, Users: 80, Started: time.Now(), Step: 1,
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
	if line := pages.Unprinted(readme(t)[""][1], out.String()); line != "" {
		t.Errorf("the README quotes of the demo what it does not print: %s\nit prints\n%s", line, &out)
	}
}

// TestTargetsOfPages holds that the Makefile has each target that the pages name.
func TestTargetsOfPages(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pagesOfRepository(t) {
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
}
