package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/cmd/internal/program"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/help"
)

// pagesOfRepository returns the paths of all Markdown pages, from this directory.
func pagesOfRepository(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "*.md")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for name := range strings.Lines(string(out)) {
		if path := filepath.Join("../..", strings.TrimSpace(name)); exists(path) {
			found = append(found, path)
		}
	}
	if len(found) < 10 {
		t.Fatalf("found the pages %q, expected all of them", found)
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// anchor returns the name that a heading has in links, as on GitHub.
func anchor(heading string) string {
	heading = strings.ReplaceAll(strings.ToLower(strings.TrimLeft(heading, "# ")), " ", "-")
	return regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(heading, "")
}

// TestLinksOfPages holds that what a page links is there: the file, and the heading behind a #.
func TestLinksOfPages(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	for _, page := range pagesOfRepository(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := code.ReplaceAllString(string(text), "`")
		links := regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose, -1)
		defined := regexp.MustCompile(`(?m)^\[([^\]]+)\]: (\S+)$`).FindAllStringSubmatch(prose, -1)
		for _, m := range defined {
			links = append(links, []string{m[0], m[2]})
		}
		for _, m := range regexp.MustCompile(`\[([a-z-]+)\](?:[^:(]|$)`).FindAllStringSubmatch(prose, -1) {
			if !slices.ContainsFunc(defined, func(d []string) bool { return d[1] == m[1] }) {
				t.Errorf("%s refers to [%s], which it does not define", page, m[1])
			}
		}
		for _, m := range links {
			target, heading, deep := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if !exists(file) {
				t.Errorf("%s links %s: no such file", page, m[1])
				continue
			}
			if !deep {
				continue
			}
			linked, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, h := range regexp.MustCompile(`(?m)^#+ .*$`).FindAllString(string(linked), -1) {
				found = found || anchor(h) == heading
			}
			if !found {
				t.Errorf("%s links %s: no such heading", page, m[1])
			}
		}
	}
}

// TestTopics holds that a topic fits on two screens, has no tables, and does not hide behind a command of the same name.
func TestTopics(t *testing.T) {
	t.Parallel()
	commands := program.Kiloshard(newApp()).Commands()
	for _, topic := range help.All() {
		if topic.Title == "" || len(topic.Title) > 60 || !strings.HasPrefix(topic.Markdown, "# ") {
			t.Errorf("%s has the title %q, expected a first line # TITLE of 60 characters at most", topic.Name, topic.Title)
		}
		text := topic.Text()
		if n := strings.Count(text, "\n") + 1; n > 150 {
			t.Errorf("kiloshard help %s prints %d lines, expected 150 at most", topic.Name, n)
		}
		if strings.Contains(text, "\n|") {
			t.Errorf("%s has a table, which does not fit a terminal: write a list", topic.Name)
		}
		named := 0
		for _, command := range commands {
			if command.Name() == topic.Name {
				named++
			}
		}
		if named != 1 {
			t.Errorf("%d commands and topics have the name %s, expected the topic alone", named, topic.Name)
		}
	}
}
