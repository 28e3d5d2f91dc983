package maps

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
)

// What export writes import reads back, whoever made the versions and whatever they said of it.
func TestHistoryRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		note := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "---", "a\n---\n# version {}", "\u2028"}))
		var versions []writtenVersion
		for i := range rapid.IntRange(1, 4).Draw(t, "count") {
			c := shards.Config{
				Cluster: "photos", Version: i + 3, Shards: 4, Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
				Hosts:     []shards.Host{{Name: "pg-a", DSN: rapid.SampledFrom([]string{"host=a", "\n---\n", "---"}).Draw(t, "dsn")}},
				Placement: []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: 3}), Host: "pg-a"}},
			}
			document, err := c.YAML()
			if err != nil {
				t.Fatal(err)
			}
			v := cli.MapVersion{Version: i + 3, At: time.Unix(int64(i), 5).UTC(), By: strings.ToValidUTF8(note.Draw(t, "by"), ""), Why: strings.ToValidUTF8(note.Draw(t, "why"), "")}
			versions = append(versions, writtenVersion{v, document})
		}
		text, err := writeHistory(versions)
		if err != nil {
			t.Fatal(err)
		}
		back, ok, err := readHistory(text)
		if err != nil || !ok || fmt.Sprintf("%q", back) != fmt.Sprintf("%q", versions) {
			t.Fatalf("%v, %v: got\n%q\nexpected\n%q\nof\n%s", ok, err, back, versions, text)
		}
	})
}

func TestReadHistoryRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		historyHead + "\n":                              "the history holds no version",
		historyHead + "\n---\ncluster: photos\n":        "entry 1 of the history",
		historyHead + "\n---\n# version {\"version\"\n": "entry 1 of the history",
	} {
		if _, ok, err := readHistory([]byte(text)); !ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, expected %s", text, ok, err, want)
		}
	}
	if _, ok, err := readHistory([]byte("cluster: photos\n")); ok || err != nil {
		t.Errorf("of a map: got %v, %v", ok, err)
	}
}

func TestChangesBetween(t *testing.T) {
	t.Parallel()
	config := func() shards.Config {
		return shards.Config{
			Cluster: "photos", Shards: 8, Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			Hosts: []shards.Host{
				{Name: "pg-a", DSN: "postgres://app:hunter2@10.0.0.1/app"},
				{Name: "pg-b", DSN: "postgres://app:${PG_B_PASSWORD}@10.0.0.2/app"},
			},
			Placement:  shards.Evenly(8, []shards.Host{{Name: "pg-a"}, {Name: "pg-b"}}),
			Generators: []shards.Generator{{Kind: shards.UUIDv7, Names: []string{"photo", "like"}}},
		}
	}
	ab := func(a, b shards.Set) []shards.Placement {
		return []shards.Placement{{Shards: a, Host: "pg-a"}, {Shards: b, Host: "pg-b"}}
	}
	tests := []struct {
		name   string
		change func(*shards.Config)
		want   string
	}{
		{"nothing", func(*shards.Config) {}, ""},
		{"the version alone", func(c *shards.Config) { c.Version = 7 }, ""},
		{"shards to another host and back", func(c *shards.Config) {
			c.Placement = ab(shards.SetOf(0, 5, 6), shards.SetOf(1, 2, 3, 4, 7))
		}, "shards 1-3: pg-a -> pg-b; shards 5-6: pg-b -> pg-a"},
		{"the placement written in another way", func(c *shards.Config) {
			c.Placement = append(ab(shards.SetOf(0, 1), shards.SetOf(4, 5, 6, 7)), shards.Placement{Shards: shards.SetOf(2, 3), Host: "pg-a"})
		}, ""},
		{"a new host with new shards", func(c *shards.Config) {
			c.Shards = 10
			c.Hosts = append(c.Hosts, shards.Host{Name: "pg-c", DSN: "host=c"})
			c.Placement = append(c.Placement, shards.Placement{Shards: shards.SetOf(8, 9), Host: "pg-c"})
		}, "shards: 8 -> 10; hosts pg-c: added, host=c; shards 8-9: opened on pg-c"},
		{"a host's address", func(c *shards.Config) { c.Hosts[1].DSN = "postgres://app:${PG_B_PASSWORD}@10.0.0.9/app" }, "hosts pg-b dsn: 10.0.0.2/app -> 10.0.0.9/app"},
		{"a host's password", func(c *shards.Config) { c.Hosts[0].DSN = "postgres://app:hunter3@10.0.0.1/app" }, "hosts pg-a dsn: 10.0.0.1/app (not shown, since it may hold a password) -> 10.0.0.1/app (not shown, since it may hold a password) (another)"},
		{"a host's user", func(c *shards.Config) { c.Hosts[1].DSN = "postgres://web:${PG_B_PASSWORD}@10.0.0.2/app" }, "hosts pg-b dsn: postgres://app:${PG_B_PASSWORD}@10.0.0.2/app -> postgres://web:${PG_B_PASSWORD}@10.0.0.2/app"},
		{"a replica and a closed host", func(c *shards.Config) { c.Hosts[0].Replicas, c.Hosts[0].Closed = []string{"password=hunter2"}, true }, "hosts pg-a replicas: [] -> [not shown, since it may hold a password]; hosts pg-a closed: false -> true"},
		{"a generator less", func(c *shards.Config) { c.Generators[0].Names = []string{"photo"} }, "generators like: removed, was uuidv7"},
		{"a generator's names in two lists", func(c *shards.Config) {
			c.Generators = []shards.Generator{{Kind: shards.UUIDv7, Names: []string{"like"}}, {Kind: shards.UUIDv7, Names: []string{"photo"}}}
		}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			from, err := config().Map()
			if err != nil {
				t.Fatal(err)
			}
			c := config()
			test.change(&c)
			to, err := c.Map()
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, change := range changesBetween(from, to) {
				texts = append(texts, change.String())
			}
			if got := strings.Join(texts, "; "); got != test.want {
				t.Errorf("got      %s\nexpected %s", got, test.want)
			}
		})
	}
}
