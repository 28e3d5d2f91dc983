package pgtest_test

import (
	_ "embed"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//go:embed faults.md
var faults string

const root = "../.."

var (
	row      = regexp.MustCompile(`(?m)^\| ([^|]+) \| (\S+)\.(Test\w+) \| (\S+)\.(Test\w+) \|$`)
	function = regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{\n(.*?)^\}`)
	long     = regexp.MustCompile(`^\s*(?:t\.Parallel\(\)\s*)?pgtest\.Long\(t\)`)
	kind     = regexp.MustCompile(`(?m)^\t\t(?:seen: true, )?name: "([^"]+)"|^\t\t\{"([^"]+)", "`)
)

// tests returns the bodies of the tests of a package.
func tests(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = m[2]
		}
	}
	return found
}

// Each row names tests that exist, and its short test runs in make test.
func TestEachFaultHasAShortTest(t *testing.T) {
	t.Parallel()
	rows := row.FindAllStringSubmatch(faults, -1)
	if got := strings.Count(faults, "\n| ") - 1; len(rows) != got || got < 30 {
		t.Fatalf("%d of %d rows have the form | kind | package.Test | package.Test |", len(rows), got)
	}
	for _, r := range rows {
		switch body, ok := tests(t, r[2])[r[3]]; {
		case !ok:
			t.Errorf("%s: there is no %s in %s", r[1], r[3], r[2])
		case long.MatchString(body):
			t.Errorf("%s: make test does not run %s.%s: expected a short test", r[1], r[2], r[3])
		}
		if _, ok := tests(t, r[4])[r[5]]; !ok {
			t.Errorf("%s: there is no %s in %s", r[1], r[5], r[4])
		}
	}
}

// Each fault of a move has a row, and each test that only make prove runs.
func TestEachFaultIsListed(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"faults_test.go", "promote_test.go"} {
		text, err := os.ReadFile(filepath.Join(root, "shards/move/prove", file))
		if err != nil {
			t.Fatal(err)
		}
		kinds := kind.FindAllStringSubmatch(string(text), -1)
		if len(kinds) < 5 {
			t.Errorf("%s: only %d kinds of faults found", file, len(kinds))
		}
		for _, m := range kinds {
			if !strings.Contains(faults, "\n| "+m[1]+m[2]+" | shards/move/prove.") {
				t.Errorf("%s: fault %q is not in faults.md", file, m[1]+m[2])
			}
		}
	}
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Compact(dirs) {
		name, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		for test, body := range tests(t, name) {
			if long.MatchString(body) && !strings.Contains(faults, " | "+filepath.ToSlash(name)+"."+test+" |\n") {
				t.Errorf("%s.%s: only make prove runs it, and no row of faults.md names its short form", name, test)
			}
		}
	}
}

var named = regexp.MustCompile(`\b([a-z][a-z/]*)\.(Test\w+)`)

// Each row of SECURITY.md names tests that exist, and that make test runs.
func TestSecurityNamesTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| compromised ") {
			continue
		}
		rows++
		names := named.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, n := range names {
			if body, ok := tests(t, n[1])[n[2]]; !ok || long.MatchString(body) {
				t.Errorf("there is no %s in %s that make test runs", n[2], n[1])
			}
		}
	}
	if rows < 10 {
		t.Errorf("%d rows", rows)
	}
}
