package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFieldsOfJSON holds that a field of JSON is a list or a count in all commands and in the page of health, as its name says.
func TestFieldsOfJSON(t *testing.T) {
	t.Parallel()
	types := map[string]*regexp.Regexp{
		"shards": regexp.MustCompile(`^\*?shards\.Set$`), "shard_count": regexp.MustCompile(`^int$`),
		"hosts": regexp.MustCompile(`^\[\]`), "host_count": regexp.MustCompile(`^int$`),
	}
	field := regexp.MustCompile("(?m)^\\s+\\w+\\s+(\\S+)\\s+`json:\"(\\w+)")
	seen := map[string]bool{}
	for _, dir := range []string{"../internal", "../../bench", "../../migrate", "../../router/health", "../../shards/move", "../../shards/provision"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, found := range field.FindAllStringSubmatch(string(text), -1) {
				if want, ok := types[found[2]]; ok && !want.MatchString(found[1]) {
					t.Errorf("%s: %q is of type %s, expected %s", path, found[2], found[1], want)
				}
				seen[found[2]] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range types {
		if !seen[name] {
			t.Errorf("no field %q found", name)
		}
	}
}
