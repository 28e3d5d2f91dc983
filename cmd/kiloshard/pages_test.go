package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/help"
)

// page has a page's blocks of code by their language, in their order.
type page map[string][]string

func blocks(markdown string) page {
	p := page{}
	for _, m := range regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```").FindAllStringSubmatch(markdown, -1) {
		p[m[1]] = append(p[m[1]], m[2])
	}
	return p
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readme(t *testing.T) page {
	t.Helper()
	return blocks(readPage(t, "../../README.md"))
}

// topic returns the blocks of a help topic.
func topic(t *testing.T, name string) page {
	t.Helper()
	return blocks(readPage(t, filepath.Join("help", name+".md")))
}

// TestBlocks counts the blocks of code. Each one runs in a test: give a new one its place there, and then here.
func TestBlocks(t *testing.T) {
	t.Parallel()
	expected := map[string]map[string]int{
		"README":     {"": 3, "go": 2, "sh": 4, "sql": 1},
		"adopt":      {"": 2, "sh": 4},
		"generators": {"go": 1, "yaml": 1},
		"documents":  {"yaml": 1},
		"layouts":    {"": 2},
		"migrations": {"sh": 1},
		"monitoring": {"go": 1},
		"moves":      {"sh": 1},
		"passwords":  {"yaml": 1},
		"rollback":   {"sh": 1},
		"router":     {"go": 2},
		"sign-up":    {"go": 1, "sh": 1, "sql": 1, "yaml": 1},
		"sql":        {"sql": 1},
		"stores":     {"sh": 1, "yaml": 2},
		"strategies": {"yaml": 1},
	}
	found := map[string]page{"README": readme(t)}
	for _, topic := range help.All() {
		found[topic.Name] = blocks(topic.Markdown)
	}
	for name, p := range found {
		for language, all := range p {
			if n := expected[name][language]; len(all) != n && !(name == "ids" && language != "sh") { // ids has other languages
				t.Errorf("%s has %d blocks of code of language %q, expected %d", name, len(all), language, n)
			}
		}
		for language, n := range expected[name] {
			if n != 0 && p[language] == nil {
				t.Errorf("%s has no block of code of language %q, expected %d", name, language, n)
			}
		}
	}
}

// TestReadmeIsShort holds that a visitor can finish the README, and that its first screen has the two commands.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	text := readPage(t, "../../README.md")
	if n := utf8.RuneCountInString(text); n > 10_000 {
		t.Errorf("the README has %d characters, expected 10,000 at most: make it a help topic", n)
	}
	first := blocks(strings.Join(strings.SplitN(text, "\n", 25)[:24], "\n"))["sh"]
	if len(first) != 1 || !regexp.MustCompile(`^make demo .*\nmake test .*\n$`).MatchString(first[0]) { // see TestMakeDemo and TestMakeTest
		t.Errorf("the README begins with the commands %q, expected make demo and make test", first)
	}
}
