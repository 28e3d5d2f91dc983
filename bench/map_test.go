package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// mapStores returns a store in Postgres and one in a file. Kills are only counted: real kills need the command's servers.
func mapStores(t *testing.T, kills *int) func(context.Context) ([]MapStore, error) {
	t.Helper()
	return func(context.Context) ([]MapStore, error) {
		kill := func(context.Context) error { *kills++; return nil }
		start := func(context.Context) error { return nil }
		return []MapStore{{
			Kind: shards.StorePostgres, Server: "Postgres", Kill: kill, Restart: start,
			Config: shards.Config{Cluster: "bench", Store: shards.Store{Kind: shards.StorePostgres, DSN: shardtest.Hosts(t, 1)[0].ConnString()}},
		}, {
			Kind: shards.StoreFile, Server: "a file", Path: filepath.Join(t.TempDir(), "kiloshard.yaml"),
			Config: shards.Config{Cluster: "bench"},
		}}, nil
	}
}

func TestMapMeasures(t *testing.T) {
	t.Parallel()
	kills := 0
	report, err := Map(t.Context(), MapConfig{
		NewStores: mapStores(t, &kills), Watchers: 40, Connections: 4, Changes: 3, Clients: 8, Operations: 100, Kills: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Failed) > 0 || kills != 4 || !slices.Equal(report.Servers, []string{"Postgres", "a file"}) {
		t.Errorf("failed %q, %d kills, servers %q", report.Failed, kills, report.Servers)
	}
	found := map[string]MapFigure{}
	for _, f := range report.Rows {
		found[fmt.Sprintf("%s, %s: %s: %s", f.Part, f.Store, f.What, f.Metric)] = f
	}
	for _, name := range []string{
		"watchers, postgres: 40 watchers of one store: p99 ms after it was called",
		"watchers, postgres: 40 watchers of 4 stores: max ms after it was called",
		"watchers, file: 40 watchers of 4 stores: p50 ms after it was called",
		"linearizable, file: 8 clients at once: versions made",
	} {
		if f, ok := found[name]; !ok || f.Value <= 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := found["watchers, postgres: 40 watchers of 4 stores, killed: watchers at the last version"]; f.Value != 40 {
		t.Errorf("%+v", f)
	}
	for _, store := range []string{"postgres", "file"} {
		if f := found["linearizable, "+store+": 8 clients at once: verdict"]; f.Text != "linearizable" {
			t.Errorf("%+v", f)
		}
	}
}

func TestMapNamesItsParts(t *testing.T) {
	t.Parallel()
	_, err := Map(t.Context(), MapConfig{Only: []string{"watchers", "wagons"}})
	if err == nil || !strings.Contains(err.Error(), `part "wagons": expected one of watchers, linearizable`) {
		t.Errorf("got %v", err)
	}
}

// A broken guarantee of a watcher is reported.
func TestCrowdFindsWhatGoesBack(t *testing.T) {
	t.Parallel()
	store := MapStore{Config: shards.Config{Cluster: "bench"}, Path: filepath.Join(t.TempDir(), "kiloshard.yaml")}
	s, err := store.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := &mapWriter{store: s, cluster: "bench"}
	var entries []mapstore.Entry
	for range 2 {
		if err := w.change(t.Context()); err != nil {
			t.Fatal(err)
		}
		entry, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	c := newCrowd(t.Context(), nil, 0)
	c.version, c.arrived = make([]int, 2), make([]time.Time, 2)
	c.tell(0, entries[1], nil, time.Now())
	c.tell(0, entries[0], nil, time.Now())
	c.tell(0, entries[1], nil, time.Now())
	c.tell(1, entries[0], nil, time.Now())
	if c.wrong != 2 || c.at(2) != 1 {
		t.Errorf("%d wrong, %d at the last version", c.wrong, c.at(2))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.await(ctx, 2); err == nil || !strings.Contains(err.Error(), "1 of 2 watchers did not receive version 2") {
		t.Errorf("got %v", err)
	}
	c.leave()
}
