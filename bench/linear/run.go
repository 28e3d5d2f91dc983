package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// Config configures [Run].
type Config struct {
	Stores     []mapstore.Store // one empty store, opened several times; the clients share them
	Cluster    string           // the cluster of the map
	Clients    int              // Defaults to 50
	Operations int              // at least so many of all clients, without those that the store refused. Defaults to 10,000

	// Kill kills the store and restarts it. Run calls it Kills times, each after a random number of operations. nil kills
	// nothing.
	Kill  func(ctx context.Context) error
	Kills int

	CheckLimit time.Duration // for the search for an order. Defaults to 5 minutes
	Seed       uint64        // of the random numbers. Defaults to a random one
}

// Report is the result of [Run].
type Report struct {
	Operations int `json:"operations"` // all but the refused ones
	Loads      int `json:"loads"`      // that returned a map or that there is none
	Swaps      int `json:"swaps"`      // that succeeded, according to the clients
	Conflicts  int `json:"conflicts"`
	Unknown    int `json:"unknown"` // swaps whose result is unknown
	Refused    int `json:"refused"` // operations that failed and changed nothing
	Kills      int `json:"kills"`
	Versions   int `json:"versions"` // in the store's history

	Seconds      float64  `json:"seconds"`
	CheckSeconds float64  `json:"check_seconds"`
	Verdict      string   `json:"verdict"` // "linearizable", "not linearizable", or "undecided" if the check ran out of time
	Wrong        []string `json:"wrong"`   // contradictions between the history and the clients' results
	Seed         uint64   `json:"seed"`

	LastError string `json:"last_error,omitempty"` // the last error of a client, except timeouts

	History []Operation `json:"-"`
}

// OK reports whether the store kept its guarantees.
func (r *Report) OK() bool { return r.Verdict == "linearizable" && len(r.Wrong) == 0 }

// String returns the report in one line.
func (r *Report) String() string {
	return fmt.Sprintf("%s: %d operations in %.1f s, %d versions (%d acknowledged, %d conflicts, %d unknown, %d refused), %d kills, checked in %.1f s, %d contradictions in the history",
		r.Verdict, r.Operations, r.Seconds, r.Versions, r.Swaps, r.Conflicts, r.Unknown, r.Refused, r.Kills, r.CheckSeconds, len(r.Wrong))
}

// Run makes the clients load and swap, and checks their results. The error is that of Kill or of reading the history;
// broken guarantees are in the report.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Clients <= 0 {
		cfg.Clients = 50
	}
	if cfg.Operations <= 0 {
		cfg.Operations = 10_000
	}
	if cfg.CheckLimit <= 0 {
		cfg.CheckLimit = 5 * time.Minute
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	r := &run{cfg: cfg, begin: time.Now()}
	outer := ctx
	group, ctx := errgroup.WithContext(outer)
	for i := range cfg.Clients {
		group.Go(func() error {
			r.client(ctx, i)
			return nil
		})
	}
	if cfg.Kill != nil && cfg.Kills > 0 {
		group.Go(func() error { return r.kill(ctx) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := outer.Err(); err != nil {
		return nil, fmt.Errorf("%d operations: %w; the last error: %w", len(r.history), err, r.lastErr)
	}
	return r.report(outer)
}

type run struct {
	cfg     Config
	begin   time.Time
	done    atomic.Int64 // operations, without refused ones
	changes atomic.Int64

	mu      sync.Mutex // guards what follows
	history []Operation
	kills   int
	lastErr error // except timeouts
}

// client runs one operation after the other. A swap replaces the version that the client saw last, which others have
// seen too.
func (r *run) client(ctx context.Context, number int) {
	random := rand.New(rand.NewPCG(r.cfg.Seed, uint64(number)))
	store := r.cfg.Stores[number%len(r.cfg.Stores)]
	version := 0
	for ctx.Err() == nil && r.done.Load() < int64(r.cfg.Operations) {
		o := Operation{Client: number, From: -1}
		if random.IntN(10) < 6 {
			o.From, o.Change = version, int(r.changes.Add(1))
		}
		limited, cancel := ctx, context.CancelFunc(func() {})
		if random.IntN(10) == 0 { // short timeouts leave results unknown
			limited, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(20_000))*time.Microsecond)
		}
		var err error
		o.Call = time.Since(r.begin)
		if o.From < 0 {
			err = load(limited, store, &o)
		} else {
			err = swap(limited, store, r.cfg.Cluster, &o)
		}
		o.Return = time.Since(r.begin)
		cancel()
		if o.Outcome == Done || o.Outcome == Conflict {
			version = o.Version
		}
		r.mu.Lock()
		r.history = append(r.history, o)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			r.lastErr = err
		}
		r.mu.Unlock()
		if o.Outcome != Refused {
			r.done.Add(1)
		} else { // the store may be down
			select {
			case <-time.After(time.Duration(1+random.IntN(20)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

func load(ctx context.Context, store mapstore.Store, o *Operation) error {
	entry, err := store.Load(ctx)
	switch {
	case err == nil:
		o.Version, o.Loaded = entry.Map.Version(), changeOf(entry)
	case errors.Is(err, mapstore.ErrNoMap):
		return nil
	default:
		o.Outcome = Refused
	}
	return err
}

func swap(ctx context.Context, store mapstore.Store, cluster string, o *Operation) error {
	entry, err := store.Swap(ctx, o.From, newChange(cluster, o.Change))
	var conflict *mapstore.ConflictError
	switch {
	case err == nil:
		o.Version = entry.Map.Version()
	case errors.As(err, &conflict):
		o.Outcome, o.Version = Conflict, conflict.Found
		return nil
	case errors.Is(err, mapstore.ErrOutcomeUnknown):
		o.Outcome = Unknown
	default:
		o.Outcome = Refused
	}
	return err
}

// newChange returns a change with a number, which is both in the map and in its description.
func newChange(cluster string, number int) mapstore.Change {
	hosts := []shards.Host{{Name: "pg-a", DSN: "postgres://10.0.0.1/app", Weight: number}}
	return mapstore.Change{Why: fmt.Sprintf("change %d", number), By: "linear", Config: shards.Config{
		Cluster: cluster, Shards: 1, Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Hosts: hosts, Placement: shards.Evenly(1, hosts),
	}}
}

// changeOf returns the number of the change that wrote an entry, -1 for a mix of several.
func changeOf(e mapstore.Entry) int {
	number := e.Map.Hosts()[0].Weight
	if e.Why != fmt.Sprintf("change %d", number) {
		return -1
	}
	return number
}

// kill kills the store after random numbers of operations.
func (r *run) kill(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.cfg.Seed, uint64(r.cfg.Clients)))
	after := make([]int64, r.cfg.Kills)
	for i := range after {
		after[i] = 1 + random.Int64N(int64(r.cfg.Operations))
	}
	slices.Sort(after)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for _, operations := range after {
		for r.done.Load() < operations {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := r.cfg.Kill(ctx); err != nil {
			return fmt.Errorf("kill the store: %w", err)
		}
		r.mu.Lock()
		r.kills++
		r.mu.Unlock()
	}
	return nil
}

func (r *run) report(ctx context.Context) (*Report, error) {
	report := &Report{Seconds: time.Since(r.begin).Seconds(), Kills: r.kills, Seed: r.cfg.Seed, History: r.history}
	for _, o := range r.history {
		switch {
		case o.Outcome == Conflict:
			report.Conflicts++
		case o.Outcome == Unknown:
			report.Unknown++
		case o.Outcome == Refused:
			report.Refused++
		case o.From < 0:
			report.Loads++
		default:
			report.Swaps++
		}
	}
	report.Operations = len(r.history) - report.Refused
	if r.lastErr != nil {
		report.LastError = r.lastErr.Error()
	}
	versions := map[int]int{}
	for entry, err := range r.cfg.Stores[0].History(ctx) {
		if err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		if _, twice := versions[entry.Map.Version()]; twice {
			report.Wrong = append(report.Wrong, fmt.Sprintf("version %d is in the history twice", entry.Map.Version()))
		}
		versions[entry.Map.Version()] = changeOf(entry)
	}
	report.Versions = len(versions)
	report.Wrong = append(report.Wrong, CompareHistory(r.history, versions)...)
	begin := time.Now()
	switch Linearizable(r.history, versions, r.cfg.CheckLimit) {
	case porcupine.Ok:
		report.Verdict = "linearizable"
	case porcupine.Illegal:
		report.Verdict = "not linearizable"
	default:
		report.Verdict = "undecided"
	}
	report.CheckSeconds = time.Since(begin).Seconds()
	return report, nil
}
