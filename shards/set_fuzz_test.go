package shards_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// FuzzSet checks that a set of shards is the same after it was written and read, and that none takes long.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{"", "7", "0-1023", "0-9,77", "1-0", "-1", "00042", "99999999999", "1,1,1", "0-8191,0-8191", "1--2", " 1 , 2 ", "1-2-3", ","} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slow := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("10 s for %.100q", text)) })
		defer slow.Stop()
		set, err := shards.ParseSet(text)
		if err != nil {
			return
		}
		if again, err := shards.ParseSet(set.String()); set.Len() > 0 && (err != nil || again.String() != set.String()) {
			t.Errorf("%q: got %s, and then %s, %v", text, set, again, err)
		}
	})
}

// FuzzHost checks that no way to show a host shows its password, and that none takes long.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"postgres://app:%s@10.0.0.1/app", "host=x password=%s", "postgres://app:%s/@x/?y", "postgres://a:b@%s@c/", "%s", "postgres://h/?password=%s", "postgres://a:%s?@h/x", "postgres://a:[%s]@h"} {
		f.Add("pg-a", seed)
	}
	const secret = "s3cret/word"
	f.Fuzz(func(t *testing.T, name, dsn string) {
		slow := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("10 s for %.100q", dsn)) })
		defer slow.Stop()
		if strings.Contains(name, "s3cret") || !strings.Contains(dsn, "%s") {
			return
		}
		h := shards.Host{Name: name, DSN: strings.ReplaceAll(dsn, "%s", secret), Weight: 1}
		_ = h.ConnString() + h.Address()
		at := strings.Index(dsn, "%s")
		if strings.Contains(dsn[:at], "@") || !strings.Contains(dsn[at:], "@") {
			return // it is in the place of a host, and hosts are shown
		}
		if text := fmt.Sprintf("%v %+v %#v %s %q", h, h, h, h, h); strings.Contains(text, "s3cret") {
			t.Errorf("%q is shown as %s", h.DSN, text)
		}
	})
}

// FuzzName checks that a config with any names is refused with the name of the wrong field, or is the same after it was
// written and read; that SQL then needs no quotes for the names; and that none takes long.
func FuzzName(f *testing.F) {
	for _, seed := range []string{"", "a", "shard_", "pg-a", "photos", "PG_", "pg_x", "a.b", "a b", "ä", "a\x00", "\"", "'; drop", "true", "null", "~", "0", "1e3", "0x_", "a\n", "\u2028", strings.Repeat("a", 70)} {
		f.Add(seed, "shard_", "pg-a", "photo")
		f.Add("photos", seed, seed, "photo")
		f.Add("photos", "shard_", "pg-a", seed)
	}
	plain := regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	f.Fuzz(func(t *testing.T, cluster, prefix, host, generator string) {
		slow := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("10 s for %.100q", []string{cluster, prefix, host, generator})) })
		defer slow.Stop()
		c := shards.Config{
			Cluster: cluster, SchemaPrefix: prefix, Shards: 8, Epoch: epoch, Layout: shards.DefaultLayout, Generators: []shards.Generator{{Kind: shards.Interleaved, Names: []string{generator}}},
			Hosts: []shards.Host{{Name: host, DSN: "postgres://10.0.0.1/app", Weight: 1}}, Placement: []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{Last: 7}), Host: host}},
		}
		m, err := c.Map()
		if err != nil {
			var e *shards.FieldError
			if !errors.As(err, &e) || e.Field == "" || e.Expected == "" {
				t.Fatalf("got %#v", err)
			}
			return
		}
		if !plain.MatchString(m.Schema(7)) || len(m.Schema(7)) > 63 || !plain.MatchString("next_"+generator+"_ids") || len("next_"+generator+"_id_seq") > 63 {
			t.Errorf("accepted %q and %q", prefix, generator)
		}
		text, err := m.Config().YAML()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := shards.Parse("k.yaml", text, environment); err != nil || !equalConfigs(back, m.Config()) {
			t.Errorf("%v: got %+v, expected %+v", err, back, m.Config())
		}
	})
}
