package shards_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

func TestYAML(t *testing.T) {
	t.Parallel()
	text, err := parse(t, document).YAML()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(document, "10.0.0.2/app\"}", "10.0.0.2/app\", replicas: [], weight: 1}", 1)
	if string(text) != want {
		t.Fatalf("got\n%s\nexpected\n%s", text, want)
	}
}

func TestYAMLOfLayouts(t *testing.T) {
	t.Parallel()
	for layout, want := range map[shards.Layout]string{
		{}:                                  "layout: {time: 41, shard: 13, sequence: 10}\n",
		{Shard: 16, Type: 10, Sequence: 36}: "layout: {time: 0, shard: 16, type: 10, sequence: 36}\n",
		{Shard: 16, Sequence: 36}:           "layout: {time: 0, shard: 16, sequence: 36}\n",
	} {
		c := newConfig(8)
		c.Layout = layout
		if text, err := c.YAML(); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: no %sin\n%s", err, want, text)
		}
	}
}

func TestYAMLQuotes(t *testing.T) {
	t.Parallel()
	c := newConfig(8)
	c.Cluster = "123"
	c.Hosts[0].Name, c.Placement[0].Host = "true", "true"
	c.Hosts[1].Name, c.Placement[1].Host = "1e3", "1e3"
	c.Placement[0].Shards, c.Placement[1].Shards = shards.SetOf(0, 2), shards.SetOf(1, 3, 4, 5, 6, 7)
	c.Migrations = "my: [dir] # {é}\n"
	c.SearchPath = []string{"null", "~", "2026-01-01", "a,b", " x", "\u2028\x7f\u0085\U0001f600", "0x1f", ".inf", "<<", "&a", "*a", "!a", "%a", "'", `"\`}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`cluster: "123"`, `name: "true"`, `{shards: "0,2", host: "true"}`, `host: "1e3"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in\n%s", part, text)
		}
	}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if back := parse(t, string(text)); !equalConfigs(back, m.Config()) {
		t.Errorf("got\n%+v\nexpected\n%+v\nof\n%s", back, m.Config(), text)
	}
}

// generators draws valid generators, with names of their own.
func generators(hosts []shards.Host) *rapid.Generator[[]shards.Generator] {
	return rapid.Custom(func(t *rapid.T) []shards.Generator {
		var drawn []shards.Generator
		for i := range rapid.IntRange(0, 3).Draw(t, "count") {
			g := shards.Generator{
				Kind:  rapid.SampledFrom(shards.GeneratorKinds).Draw(t, "kind"),
				Names: []string{fmt.Sprintf("g%d", i), fmt.Sprintf("null_%d", i)},
			}
			switch {
			case g.Kind == shards.Tickets && len(hosts) < 2:
				continue
			case g.Kind == shards.Tickets:
				g.Hosts, g.Of = []string{hosts[1].Name, hosts[0].Name}, rapid.SampledFrom([]int{0, 2, 7}).Draw(t, "of")
			case g.Kind == shards.Interleaved:
				g.Of = rapid.SampledFrom([]int{0, 300, 5000}).Draw(t, "of")
			case !g.InShards():
				g.Hosts = []string{hosts[0].Name}
			}
			if g.Kind != shards.UUIDv4 && g.Kind != shards.UUIDv7 {
				g.From = rapid.SampledFrom([]int64{0, 1, 72157623227190423}).Draw(t, "from")
			}
			drawn = append(drawn, g)
		}
		return drawn
	})
}

// configs draws valid configs.
func configs() *rapid.Generator[shards.Config] {
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,5}`)
	dsn := rapid.OneOf(
		rapid.SampledFrom([]string{"postgres://app:${PG_A_PASSWORD}@10.0.0.1/app", "host=${PG_HOST} password='it''s'", "${PG_A_DSN}", "a\\b\"c"}),
		rapid.StringMatching(`[^$\x00]+`),
	)
	return rapid.Custom(func(t *rapid.T) shards.Config {
		layout := rapid.SampledFrom([]shards.Layout{
			{},
			{Time: 41, Shard: 13, Sequence: 10},
			{Time: 40, Shard: 12, Sequence: 9},
			{Time: 41, Shard: 10, Type: 4, Sequence: 8},
			{Shard: 16, Type: 10, Sequence: 36},
			{Shard: 16, Sequence: 36},
		}).Draw(t, "layout")
		c := shards.Config{
			Cluster:       name.Draw(t, "cluster"),
			Shards:        rapid.IntRange(1, 300).Draw(t, "shards"),
			SchemaPrefix:  rapid.SampledFrom([]string{"", "shard_", "s", "null", "y_"}).Draw(t, "prefix"),
			Epoch:         epoch.AddDate(0, 0, rapid.IntRange(-10_000, 10_000).Draw(t, "days")).Add(1e6 * 1234567),
			Layout:        layout,
			Migrations:    rapid.SampledFrom([]string{"", "./migrations", "/srv/migrations", "~", "C:\\x", "on"}).Draw(t, "migrations"),
			SearchPath:    rapid.SliceOfN(rapid.StringMatching(`[^\x00]{1,10}`), 0, 2).Draw(t, "search path"),
			SharedSchemas: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"public", "app", "a b", "null", `o"dd`}), 0, 3, rapid.ID).Draw(t, "shared"),
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"citext", "uuid-ossp", "null", "7"}), 0, 3, rapid.ID).Draw(t, "extensions") {
			c.Extensions = append(c.Extensions, shards.Extension{
				Name:   name,
				Schema: rapid.SampledFrom([]string{"", "public", "a b", "on", "pg_catalog"}).Draw(t, "schema"), Version: rapid.SampledFrom([]string{"", "1.6", "1e3", `"`}).Draw(t, "version"),
			})
		}
		if layout.Shard > 0 && !layout.HasTime() && rapid.Bool().Draw(t, "no epoch") {
			c.Epoch = time.Time{}
		}
		for _, host := range rapid.SliceOfNDistinct(name, 1, 4, rapid.ID).Draw(t, "hosts") {
			c.Hosts = append(c.Hosts, shards.Host{
				Name: host, DSN: dsn.Draw(t, "dsn"), Weight: rapid.IntRange(0, 3).Draw(t, "weight"),
				Closed: rapid.Bool().Draw(t, "closed"), Capacity: rapid.SampledFrom([]int{0, 1000}).Draw(t, "capacity"),
				Replicas: rapid.SliceOfN(dsn, 0, 2).Draw(t, "replicas"), Direct: rapid.OneOf(rapid.Just(""), dsn).Draw(t, "direct"),
			})
		}
		c.Generators = generators(c.Hosts).Draw(t, "generators")
		c.Strategy = strategies(c.Shards).Draw(t, "strategy")
		homes := rapid.SliceOfN(rapid.IntRange(0, len(c.Hosts)-1), c.Shards, c.Shards).Draw(t, "homes")
		byHost := make([][]shards.Number, len(c.Hosts))
		for n, host := range homes {
			byHost[host] = append(byHost[host], shards.Number(n))
		}
		for i, numbers := range byHost {
			if len(numbers) > 0 {
				c.Placement = append(c.Placement, shards.Placement{Shards: shards.SetOf(numbers...), Host: c.Hosts[i].Name})
			}
		}
		return c
	})
}

func TestYAMLRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn := configs().Draw(t, "config")
		text, err := drawn.YAML()
		if err != nil {
			t.Fatal(err)
		}
		c, err := shards.Parse("k.yaml", text, environment)
		if err != nil {
			t.Fatalf("%v, of\n%s", err, text)
		}
		again, err := c.YAML()
		if err != nil || string(again) != string(text) {
			t.Fatalf("%v:\n%s\nbecame\n%s", err, text, again)
		}
		back, err := shards.Parse("k.yaml", again, environment)
		if err != nil || !equalConfigs(back, c) {
			t.Fatalf("%v: got %+v, expected %+v", err, back, c)
		}
		m, err := drawn.Map()
		if err != nil || fmt.Sprint(m.Config()) != fmt.Sprint(withoutVariables(c)) {
			t.Fatalf("%v: got %v, expected %v", err, c, m.Config())
		}
		for i, h := range drawn.Hosts {
			if c.Hosts[i].DSN != h.DSN || c.Hosts[i].Direct != h.Direct || fmt.Sprint(c.Hosts[i].Replicas) != fmt.Sprint(h.Replicas) {
				t.Fatalf("got DSNs %q, %q, expected %q, %q", c.Hosts[i].DSN, c.Hosts[i].Replicas, h.DSN, h.Replicas)
			}
		}
	})
}

// equalConfigs compares configs, with the DSNs of their hosts as written and as resolved.
func equalConfigs(a, b shards.Config) bool {
	for i := range min(len(a.Hosts), len(b.Hosts)) {
		x, y := a.Hosts[i], b.Hosts[i]
		if x.ConnString() != y.ConnString() || x.ForCommands().ConnString() != y.ForCommands().ConnString() || !slices.Equal(x.ReplicaConnStrings(), y.ReplicaConnStrings()) {
			return false
		}
	}
	if a.Store.ConnString() != b.Store.ConnString() || a.Store.PasswordText() != b.Store.PasswordText() {
		return false
	}
	return reflect.DeepEqual(withoutVariables(a), withoutVariables(b))
}

// withoutVariables returns the config as if it had been made in Go.
func withoutVariables(c shards.Config) shards.Config {
	hosts := make([]shards.Host, len(c.Hosts))
	for i, h := range c.Hosts {
		hosts[i] = shards.Host{Name: h.Name, DSN: h.DSN, Direct: h.Direct, Replicas: h.Replicas, Weight: h.Weight, Closed: h.Closed, Capacity: h.Capacity}
	}
	c.Hosts = hosts
	s := c.Store
	c.Store = shards.Store{
		Kind: s.Kind, DSN: s.DSN, Endpoints: s.Endpoints, Prefix: s.Prefix, User: s.User, Password: s.Password,
		CA: s.CA, Cert: s.Cert, Key: s.Key,
	}
	return c
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	text := shards.Template(shards.Config{Epoch: epoch})
	c := parse(t, string(text))
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if m.Len() != 2048 || m.Host(1023).Name != "pg-a" || m.Host(1024).Name != "pg-b" || c.Epoch != epoch {
		t.Errorf("got\n%s", text)
	}
	fields := strings.Split("cluster shards schema_prefix epoch layout strategy store hosts placement migrations search_path", " ")
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		name, _, ok := strings.Cut(line, ":")
		if ok && len(fields) > 0 && name == fields[0] {
			if !strings.HasPrefix(lines[i-1], "# ") {
				t.Errorf("no comment before %s", name)
			}
			fields = fields[1:]
		}
	}
	if len(fields) > 0 {
		t.Errorf("these fields are missing or out of order: %v", fields)
	}
	_, err = shards.Parse("k.yaml", text, func(string) (string, bool) { return "", false })
	if err == nil || !strings.Contains(err.Error(), "PG_A_PASSWORD is not set") {
		t.Errorf("without the variables: got %v", err)
	}
	var e *shards.FieldError
	if !errors.As(err, &e) || !strings.Contains(lines[e.Line-1], "PG_A_PASSWORD") {
		t.Errorf("the error names line %d", e.Line)
	}
}

func TestTemplateOfConfig(t *testing.T) {
	t.Parallel()
	c := newConfig(10)
	c.Placement = nil
	c.Hosts = append(c.Hosts, shards.Host{Name: "pg-c", DSN: "host=c"})
	back := parse(t, string(shards.Template(c)))
	if len(back.Hosts) != 3 || back.Shards != 10 || back.Cluster != "photos" {
		t.Errorf("got %v", back)
	}
	var placed []string
	for _, p := range back.Placement {
		placed = append(placed, p.Host+" "+p.Shards.String())
	}
	if got, want := strings.Join(placed, ", "), "pg-a 0-2, pg-b 3-5, pg-c 6-9"; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	c.Shards = 2 // fewer than hosts
	if back := parse(t, string(shards.Template(c))); len(back.Placement) != 2 {
		t.Errorf("2 shards on 3 hosts: got %v", back.Placement)
	}
}

// Neither Template nor Parse reads the program's environment.
func TestEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("PG_A_PASSWORD", "hunter2")
	t.Setenv("PG_B_PASSWORD", "hunter2")
	if _, err := shards.Parse("k.yaml", []byte(document), nil); err == nil {
		t.Error("Parse read the environment")
	}
	if _, err := shards.Parse("k.yaml", []byte(document), os.LookupEnv); err != nil {
		t.Error(err)
	}
}
