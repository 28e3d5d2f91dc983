package shards_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

// FuzzParse checks that Parse never panics, that its errors have a file and a line, and that it accepts a config again
// after it was written.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		document,
		string(shards.Template(shards.Config{Epoch: epoch})),
		inPostgres, inEtcd, string(shards.Template(shards.Config{Store: shards.Store{Kind: "etcd"}})),
		"", "a", "[", "{", "- - -", "<<: &a {<<: *a}", "hosts: [{name: &n a, dsn: *n}]", "%YAML 1.2\n---\n", "? a\n: b",
		"cluster: |\n  a\nshards: 1\nepoch: 2026-01-01\nhosts: [{name: a, dsn: x}]\nplacement: [{shards: 0, host: a}]\n",
		"cluster: !!str a", "\ufeff", "cluster: \"\\u0000\"", "--- a\n--- b", "a: b: c", "&a *a", "*a", "cluster: &a", "&a : b",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		slow := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("10 s for %d bytes: %.1000q", len(data), data)) })
		defer slow.Stop()
		c, err := shards.Parse("k.yaml", data, environment)
		if err != nil {
			var e *shards.FieldError
			if !errors.As(err, &e) || e.File != "k.yaml" || e.Line < 1 || e.Found == "" || e.Expected == "" {
				t.Fatalf("got %#v", err)
			}
			return
		}
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		back, err := shards.Parse("k.yaml", text, environment)
		if err != nil || !equalConfigs(back, c) {
			t.Fatalf("%v: got %+v, expected %+v", err, back, c)
		}
	})
}

// The error of a config that is damaged outside the password does not show the password.
func TestParseOfDamagedConfigNeverShowsAPassword(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	whole := strings.ReplaceAll(strings.ReplaceAll(document, "${PG_A_PASSWORD}", secret), "${PG_B_PASSWORD}", secret)
	block := strings.ReplaceAll(whole, "  - {name: pg-b, dsn: \"postgres://app:hunter2@10.0.0.2/app\"}", "  - name: pg-b\n    dsn: postgres://app:hunter2@10.0.0.2/app")
	rapid.Check(t, func(t *rapid.T) {
		parts := strings.SplitAfter(rapid.SampledFrom([]string{whole, block}).Draw(t, "document"), secret)
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			i := rapid.IntRange(0, len(parts)-1).Draw(t, "part")
			part, kept := strings.CutSuffix(parts[i], secret)
			at := rapid.IntRange(0, len(part)).Draw(t, "at")
			end := min(len(part), at+rapid.IntRange(0, 8).Draw(t, "deleted"))
			part = part[:at] + rapid.StringOfN(rapid.RuneFrom([]rune("{}[]:,-\"'&*!|>%@`\n\t #?ax")), 0, 3, -1).Draw(t, "inserted") + part[end:]
			if kept {
				part += secret
			}
			parts[i] = part
		}
		text := strings.Join(parts, "")
		_, err := shards.Parse("k.yaml", []byte(text), nil)
		if shown := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(shown, secret) {
			t.Fatalf("%s\nfor\n%s", shown, text)
		}
	})
}
