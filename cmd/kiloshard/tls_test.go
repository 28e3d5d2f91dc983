package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestServersVerify holds that a host and a store without sslmode must verify themselves, unless they are on this machine, and that the
// error says what else there is.
func TestServersVerify(t *testing.T) {
	t.Parallel()
	hosts := shardtest.Hosts(t, 2)
	// 0.0.0.0 leads to this machine and is no loopback address. An empty sslmode is none.
	at := func(i int, mode string) string {
		text := dsn.With(hosts[i].ConnString(), "sslmode", mode)
		if d, err := dsn.Parse(text); err == nil && d.Get("host") == "127.0.0.1" {
			text = dsn.With(text, "host", "0.0.0.0")
		}
		return text
	}
	kiloshard := func(config string, args ...string) (code int, said string) {
		file := filepath.Join(t.TempDir(), "kiloshard.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code = run(t.Context(), append([]string{"-c", file, "--store-timeout", "1m"}, args...), strings.NewReader(""), &out, &out)
		return code, out.String()
	}
	of := func(text string) string {
		return fmt.Sprintf("cluster: photos\nshards: 4\nepoch: 2026-01-01T00:00:00Z\nhosts:\n  - {name: pg-a, dsn: %q}\nplacement:\n  - {shards: 0-3, host: pg-a}\n", text)
	}
	store := func(mode string) string {
		return fmt.Sprintf("cluster: photos\nstore: {kind: postgres, dsn: %q}\n", at(1, mode))
	}
	// The first of two addresses is down.
	parsed, err := dsn.Parse(at(0, ""))
	if err != nil {
		t.Fatal("a host's DSN cannot be parsed")
	}
	two := of(dsn.With(at(0, ""), "host", "127.0.0.1,"+parsed.Get("host"), "port", "1,"+parsed.Get("port")))
	if code, said := kiloshard(of(at(0, "disable")), "create"); code != 0 {
		t.Fatalf("create with sslmode=disable: exit code %d:\n%s", code, said)
	}
	const otherwise = "without sslmode a DSN means verify-full: sslmode=require"
	for _, test := range []struct {
		config string
		args   []string
	}{
		{of(at(0, "")), []string{"create"}},
		{of(at(0, "")), []string{"verify"}},
		{of(at(0, "")), []string{"status"}},
		{two, []string{"status"}},
		{two, []string{"verify"}},
		{of(at(0, "")), []string{"exec", "select 1", "--all"}},
		{of(at(0, "")), []string{"psql", "0", "--", "-c", "select 1"}},
		{store(""), []string{"map", "history"}},
	} {
		if code, said := kiloshard(test.config, test.args...); code == 0 || !strings.Contains(said, otherwise) {
			t.Errorf("%q without sslmode: exit code %d, expected a failure that says %q:\n%s", test.args, code, otherwise, said)
		}
	}
	if _, said := kiloshard(store("disable"), "map", "history"); strings.Contains(said, "verify-full") {
		t.Errorf("map history with sslmode=disable:\n%s", said)
	}
}
