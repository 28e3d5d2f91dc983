package mapstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

func testRefused(t *testing.T, k kit) {
	s := k.open(t)
	swap(t, s, 0, 1)
	now := load(t, s)
	for _, test := range []struct {
		name   string
		change func(*mapstore.Change)
		want   string // in the error
	}{
		{"password", func(c *mapstore.Change) { c.Config.Hosts[0].DSN = "postgres://app:sesame@10.0.0.1/app" }, "${PG_A_PASSWORD}"},
		{"password as keyword", func(c *mapstore.Change) { c.Config.Hosts[1].DSN = "host=10.0.0.1 password=sesame" }, "${PG_B_PASSWORD}"},
		{"password of a replica", func(c *mapstore.Change) { c.Config.Hosts[1].Replicas[0] = "postgres://10.0.0.3/app?password=sesame" }, "hosts[1].replicas[0]"},
		{"password of commands", func(c *mapstore.Change) { c.Config.Hosts[1].Direct = "postgres://app:sesame@10.0.0.3/app" }, "hosts[1].direct"},
		{"homeless shards", func(c *mapstore.Change) { c.Config.Placement = c.Config.Placement[:1] }, "no host for 4 shards"},
		{"no text", func(c *mapstore.Change) { c.Why = "\xff" }, "UTF-8"},
		{"much text", func(c *mapstore.Change) { c.By = strings.Repeat("a", 5000) }, "4096"},
	} {
		next := newChange(2)
		test.change(&next)
		_, err := s.Swap(newContext(t), 1, next)
		if err == nil || errors.Is(err, mapstore.ErrOutcomeUnknown) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
		if would := s.(mapstore.Checker).Check(newContext(t), next); err != nil && (would == nil || would.Error() != err.Error()) {
			t.Errorf("%s: Check returns %v, and Swap %v", test.name, would, err)
		}
		if err != nil {
			_ = checkAs[*shards.FieldError](t, err)
			if strings.Contains(err.Error(), "sesame") {
				t.Errorf("%s: the error shows the password", test.name)
			}
		}
	}
	for name, change := range map[string]func(*shards.Config){
		"cluster": func(c *shards.Config) { c.Cluster = "videos" },
		"epoch":   func(c *shards.Config) { c.Epoch = c.Epoch.Add(time.Hour) },
		"layout":  func(c *shards.Config) { c.Layout = shards.Layout{Time: 40, Shard: 13, Sequence: 10} },
	} {
		next := newChange(2)
		change(&next.Config)
		to := next.Config
		to.Version = 2
		m, err := to.Map()
		if err != nil {
			t.Fatal(err)
		}
		want := shards.CheckChange(now.Map, m)
		_, err = s.Swap(newContext(t), 1, next)
		if err == nil && want == nil && name != "cluster" {
			t.Logf("%s: shards.CheckChange has nothing against it", name)
			t.FailNow()
		}
		if name != "cluster" || want != nil {
			if got := checkAs[*shards.ChangeError](t, err); got.Error() != want.Error() {
				t.Errorf("%s: error %v, want %v", name, err, want)
			}
		}
	}
	if err := s.(mapstore.Checker).Check(newContext(t), newChange(2)); err != nil {
		t.Error(err)
	}
	checkEntry(t, load(t, s), 1, 1)
	if all := versions(t, s); len(all) != 1 {
		t.Errorf("%d versions, want 1", len(all))
	}
}
