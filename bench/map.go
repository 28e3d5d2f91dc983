package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// MapConfig says how [Map] measures.
type MapConfig struct {
	// NewStores returns an empty store of each kind, on the same servers every time.
	NewStores func(ctx context.Context) ([]MapStore, error)

	Only []string // the parts to run, of those that [MapParts] returns. Defaults to all

	Watchers    int // of the part watchers. Defaults to 1000
	Connections int // number of stores, each with its own connection, that the watchers share the second time. Defaults to 50
	Changes     int // that they watch. Defaults to 50

	Clients    int // of the part linearizable, all at once. Defaults to 50
	Operations int // of all clients. Defaults to 10,000
	Kills      int // in each part, of stores that can be killed. Defaults to 20; fewer than 0 for none

	Progress func(what string)
}

// MapStore is a store to measure.
type MapStore struct {
	Kind   string        // as in the config
	Server string        // a description for the output
	Config shards.Config // with the cluster and the store
	Path   string        // of the file, for a store of kind file

	// Kill kills the store's server with SIGKILL, and Restart starts it again. They are nil for a store without a server.
	Kill, Restart func(ctx context.Context) error
}

// Open opens the store.
func (s MapStore) Open(ctx context.Context) (mapstore.Store, error) {
	return mapstore.Open(ctx, s.Config, mapstore.Options{Path: s.Path})
}

// MapReport is the result of [Map].
type MapReport struct {
	Servers []string    `json:"servers"`
	Rows    []MapFigure `json:"rows"`
	Failed  []string    `json:"failed"` // broken guarantees
}

// MapFigure is one figure of one store.
type MapFigure struct {
	Part   string  `json:"part"`
	Store  string  `json:"store"`
	What   string  `json:"what"`
	Metric string  `json:"metric"` // with its unit
	Value  float64 `json:"value"`
	Text   string  `json:"text,omitempty"` // instead of the value, if it is not a number
}

// mapPart is a part of the benchmark, which runs once for each store.
type mapPart = part[func(ctx context.Context, b *mapBench, store MapStore) error]

func mapParts() []mapPart {
	return []mapPart{
		{"watchers", measureWatchers},
		{"linearizable", measureLinearizable},
	}
}

// MapParts returns the names of the parts of [Map], in the order in which they run.
func MapParts() []string {
	return namesOf(mapParts())
}

// Map measures the map's stores, and checks their guarantees while their servers are killed. Broken guarantees are in the
// report.
func Map(ctx context.Context, cfg MapConfig) (*MapReport, error) {
	cfg = cfg.withDefaults()
	parts, err := chosen(mapParts(), cfg.Only)
	if err != nil {
		return nil, err
	}
	b := &mapBench{cfg: cfg}
	for _, part := range parts {
		stores, err := cfg.NewStores(ctx)
		if err != nil {
			return nil, err
		}
		for _, store := range stores {
			if !slices.Contains(b.report.Servers, store.Server) {
				b.report.Servers = append(b.report.Servers, store.Server)
			}
			b.part, b.store = part.name, store.Kind
			b.progress("")
			if err := part.run(ctx, b, store); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", part.name, store.Kind, err)
			}
		}
	}
	return &b.report, nil
}

func (cfg MapConfig) withDefaults() MapConfig {
	for _, field := range []struct {
		value     *int
		otherwise int
	}{
		{&cfg.Watchers, 1000}, {&cfg.Connections, 50}, {&cfg.Changes, 50}, {&cfg.Clients, 50}, {&cfg.Operations, 10_000},
	} {
		if *field.value <= 0 {
			*field.value = field.otherwise
		}
	}
	if cfg.Kills == 0 {
		cfg.Kills = 20
	}
	cfg.Kills = max(cfg.Kills, 0)
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	return cfg
}

// mapBench is the state of one [Map].
type mapBench struct {
	cfg         MapConfig
	part, store string // that are running
	report      MapReport
}

// progress reports what runs next.
func (b *mapBench) progress(what string) {
	b.cfg.Progress(strings.TrimSuffix(b.part+", "+b.store+", "+what, ", "))
}

// add adds a row to the report.
func (b *mapBench) add(what, metric string, value float64) {
	b.report.Rows = append(b.report.Rows, MapFigure{Part: b.part, Store: b.store, What: what, Metric: metric, Value: value})
}

// addTimes adds rows for the median, the 99th percentile and the maximum of some times.
func (b *mapBench) addTimes(what, since string, times []time.Duration) {
	slices.Sort(times)
	l := lap{latencies: times}
	b.add(what, "p50 ms "+since, l.value(p50)/1000)
	b.add(what, "p99 ms "+since, l.value(p99)/1000)
	b.add(what, "max ms "+since, l.value(longest)/1000)
}

// fail reports a broken guarantee.
func (b *mapBench) fail(format string, args ...any) {
	b.report.Failed = append(b.report.Failed, fmt.Sprintf("%s, %s: ", b.part, b.store)+fmt.Sprintf(format, args...))
}

// kills returns how often a store is killed.
func (b *mapBench) kills(store MapStore) int {
	if store.Kill == nil {
		return 0
	}
	return b.cfg.Kills
}

// openMany opens a store several times. The returned function closes all of them.
func openMany(ctx context.Context, store MapStore, count int) ([]mapstore.Store, func() error, error) {
	var stores []mapstore.Store
	closeAll := func() error { return together(len(stores), func(i int) error { return stores[i].Close() }) }
	for range count {
		s, err := store.Open(ctx)
		if err != nil {
			_ = closeAll()
			return nil, nil, err
		}
		stores = append(stores, s)
	}
	return stores, closeAll, nil
}
