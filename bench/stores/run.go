package stores

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// Config configures [Run].
type Config struct {
	NewHosts func(ctx context.Context) ([]shards.Host, error) // two empty hosts

	Only     []string // the parts to run, of those that [Parts] returns. Defaults to all
	Shards   int      // over both hosts. Defaults to 200
	Rounds   int      // each with one turn of both sides. Defaults to 9
	Calls    int      // of each side in a round. Defaults to 4000
	Callers  int      // at the same time. Defaults to 16
	IDs      int      // of GetMany. Defaults to 500
	Entities int      // that the cleaner fills an index with. Defaults to 400,000

	Progress func(what string)
}

// Report is the result of [Run].
type Report struct {
	Shards  int      `json:"shard_count"`
	Rounds  int      `json:"rounds"`
	Callers int      `json:"callers"`
	Points  []Figure `json:"points"`
	Filled  int      `json:"filled"` // entities
	Rate    float64  `json:"filled_per_second"`
	// WithCheck is the same including the check of each row of the index afterwards.
	WithCheck float64 `json:"filled_and_checked_per_second"`
}

// Figure compares one operation. Times are microseconds per call, over all callers, medians of the rounds.
type Figure struct {
	What   string  `json:"what"`
	Ours   float64 `json:"ours_us"`
	ByHand float64 `json:"by_hand_us"`
	Ratio  float64 `json:"ratio"` // of ours to by hand, the median of the rounds'
	// Messages a call, of all rounds: what is sent down a connection until it answers. Calls that are sent together share one.
	OurMessages    float64 `json:"our_messages"`
	ByHandMessages float64 `json:"by_hand_messages"`
}

// pin is the object of the benchmark.
type pin struct {
	Details string `json:"details"`
	Link    string `json:"link"`
	Likes   int    `json:"likes"`
}

var (
	tables     = objects.Tables{Types: []string{"pin"}}
	definition = entities.Definition{Indexes: []entities.IndexDefinition{
		{Name: "index_link", Properties: []entities.Property{{Name: "link", Type: entities.Text}}},
	}}
)

// bench is the state of one [Run].
type bench struct {
	cfg    Config
	m      *shards.Map
	r      *router.Router
	pools  []*pgxpool.Pool // of the hosts, with an empty search_path
	wires  [2]wire         // ours, by hand
	report Report
}

var parts = []struct {
	name string
	run  func(*bench, context.Context) error
}{{"objects", (*bench).objects}, {"entities", (*bench).entities}, {"getmany", (*bench).many}, {"fill", (*bench).fill}}

// Parts returns the names of the parts of [Run], in the order in which they run.
func Parts() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// Run measures on new shards. The error is that of the first call that fails.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	for value, otherwise := range map[*int]int{&cfg.Shards: 200, &cfg.Rounds: 9, &cfg.Calls: 4000, &cfg.Callers: 16, &cfg.IDs: 500, &cfg.Entities: 400_000} {
		if *value <= 0 {
			*value = otherwise
		}
	}
	for _, name := range cfg.Only {
		if !slices.Contains(Parts(), name) {
			return nil, fmt.Errorf("part %q: expected one of %s", name, strings.Join(Parts(), ", "))
		}
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	b := &bench{cfg: cfg, report: Report{Shards: cfg.Shards, Rounds: cfg.Rounds, Callers: cfg.Callers}}
	m, err := b.create(ctx)
	if err != nil {
		return nil, err
	}
	b.m = m
	if b.r, err = b.openRouter(ctx); err != nil {
		return nil, err
	}
	defer b.r.Close()
	for _, host := range m.Hosts() {
		pool, err := pgxpool.ParseConfig(host.ConnString())
		if err != nil {
			return nil, err
		}
		pool.MaxConns = int32(cfg.Callers)
		pool.ConnConfig.DialFunc = b.wires[1].dial
		opened, err := pgxpool.NewWithConfig(ctx, pool)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		b.pools = append(b.pools, opened)
	}
	for _, p := range parts {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, p.name) {
			continue
		}
		if err := p.run(b, ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return &b.report, nil
}

func (b *bench) openRouter(ctx context.Context) (*router.Router, error) {
	return router.New(ctx, router.Config{Map: b.m, Pool: func(_ shards.Host, pool *pgxpool.Config) error {
		pool.MaxConns = int32(b.report.Callers)
		pool.ConnConfig.DialFunc = b.wires[0].dial
		return nil
	}})
}

func (b *bench) create(ctx context.Context) (*shards.Map, error) {
	b.cfg.Progress("making shards")
	hosts, err := b.cfg.NewHosts(ctx)
	if err != nil {
		return nil, err
	}
	m, err := shards.Config{
		Cluster: "bench", Shards: b.cfg.Shards, Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Hosts: hosts,
		Placement: shards.Evenly(b.cfg.Shards, hosts), Types: []shards.ObjectType{{Name: "pin", Number: 1}},
	}.Map()
	if err != nil {
		return nil, err
	}
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
		return nil, err
	}
	_, err = migrate.Up(ctx, migrate.Config{Map: m, Files: fstest.MapFS{
		"001_objects.sql": {Data: []byte(tables.Migration())}, "002_entities.sql": {Data: []byte(definition.Migration())},
	}})
	return m, err
}

// compare makes both sides' calls in turns, with i from 0 up for each, and adds the figure.
func (b *bench) compare(ctx context.Context, what string, calls int, ours, byHand func(ctx context.Context, i int) error) error {
	b.cfg.Progress(what)
	var took [2][]float64
	var sent [2]float64
	sides := []func(context.Context, int) error{ours, byHand}
	for round := -1; round < b.cfg.Rounds; round++ { // the first one is a warm-up for connections, statements and plans
		for k := range sides {
			side := (k + round + 1) % 2
			before, began := b.wires[side].messages.Load(), time.Now()
			if err := b.all(calls, func(i int) error { return sides[side](ctx, (round+1)*calls+i) }); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if round >= 0 {
				sent[side] += float64(b.wires[side].messages.Load()-before) / float64(calls*b.cfg.Rounds)
				took[side] = append(took[side], float64(time.Since(began).Microseconds())/float64(calls))
			}
		}
	}
	ratios := make([]float64, b.cfg.Rounds)
	for i := range ratios {
		ratios[i] = took[0][i] / took[1][i]
	}
	b.report.Points = append(b.report.Points, Figure{what, stats.Median(took[0]), stats.Median(took[1]), stats.Median(ratios), sent[0], sent[1]})
	return nil
}

// all makes calls with the given number of concurrent callers, and returns the first error.
func (b *bench) all(calls int, call func(i int) error) error {
	callers := min(b.cfg.Callers, calls)
	errs := make(chan error, callers)
	for c := range callers {
		go func() {
			for i := c; i < calls; i += callers {
				if err := call(i); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var first error
	for range callers {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
