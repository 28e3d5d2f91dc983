package router_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	hashed := func(c *shards.Config) { c.Strategy = shards.Strategy{By: shards.Hash, Hash: shards.MD5} }
	ranged := func(c *shards.Config) {
		c.Strategy = shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.NumberKey(0), Shard: 3}, {From: shards.NumberKey(1000), Shard: 4}}}
	}
	db, ctx := setup(t, options{hosts: 2, config: withDirectory})
	alice, seven := shards.TextKey("alice"), shards.NumberKey(7)
	db.entry(ctx, t, alice, 40)
	schema := func(key shards.Key) string { return db.Map().Schema(db.Map().EntryShard(key)) }
	directory, _ := setup(t, options{on: db, config: withDirectory, maxAge: time.Hour})
	modulo, _ := setup(t, options{on: db})
	hash, _ := setup(t, options{on: db, config: hashed})
	byRange, _ := setup(t, options{on: db, config: ranged})
	for _, test := range []struct {
		router *testBundle
		key    shards.Key
		want   string
	}{
		{modulo, shards.NumberKey(31341), "key 31341: modulo: 31341 mod 64 = 45: shard 45 (shard_00045 on pg-b)"},
		{hash, alice, `key alice: hash: md5("alice") = 0x6384e2b2184bcbf58eccf10ca7a6563c, mod 64 = 60: shard 60 (shard_00060 on pg-b)`},
		{byRange, seven, "key 7: range: 7 is in the range from 0 until 1000: shard 3 (shard_00003 on pg-a)"},
		{directory, alice, "key alice: directory: entry of " + schema(alice) + ", looked up: shard 40 (shard_00040 on pg-b)"},
		{directory, alice, "key alice: directory: entry of " + schema(alice) + ", cached: shard 40 (shard_00040 on pg-b)"},
		{directory, seven, "key 7: directory: no entry in " + schema(seven) + ", looked up; otherwise 7 mod 64 = 7: shard 7 (shard_00007 on pg-a)"},
	} {
		p, err := test.router.Explain(ctx, test.key)
		if err != nil || p.String() != test.want {
			t.Errorf("got %s, %v, expected %s", p, err, test.want)
		}
		text, err := json.Marshal(p)
		if printed := fmt.Sprintf("%+v %#v %s", p, p, text); err != nil || strings.Contains(printed, "postgres://") {
			t.Errorf("a DSN is in %s, %v", printed, err)
		}
		if s, err := test.router.ForKey(ctx, test.key); err != nil || s.Number() != p.Shard {
			t.Errorf("%s, but it went to %v, %v", p, numberOf(s, err), err)
		}
	}
	for _, key := range []shards.Key{{}, shards.TextKey("bob")} {
		for _, r := range []*testBundle{modulo, directory} {
			if _, err := r.Explain(ctx, key); !errors.Is(err, shards.ErrNoShard) {
				t.Errorf("key %q: %v", key, err)
			}
		}
	}
}
