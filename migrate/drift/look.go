package drift

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// Config is the shards to compare, and how.
type Config struct {
	Map    *shards.Map
	Shards shards.Set // Defaults to all shards of the map
	Batch  int        // shards per query. More are faster and need more of the server's memory. Defaults to 1024
}

const defaultBatch = 1024

// maxDifferences is the number of groups whose differences are reported.
const maxDifferences = 20

var errVersion = errors.New("its schema_version cannot be read: expected a table with one row and the column version")

func (c Config) withDefaults() (Config, error) {
	if c.Map == nil {
		return c, errors.New("drift: Config.Map is nil: expected the map of the cluster")
	}
	if c.Shards.Len() == 0 {
		c.Shards = c.Map.All()
	}
	for _, r := range c.Shards.Ranges() {
		if !c.Map.Has(r.Last) {
			return c, fmt.Errorf("shard %d, the map has shards 0 to %d: %w", r.Last, c.Map.Len()-1, shards.ErrNoShard)
		}
	}
	if c.Batch <= 0 {
		c.Batch = defaultBatch
	}
	return c, nil
}

// Look groups the shards of each migration version by their structure. It changes nothing. A migration under way may show
// as a difference.
//
// With an error, the report covers all shards that could be read. The error is a [shards.PartialError]: its causes are the
// hosts that did not answer, and failed are the shards whose version cannot be read. Shards that are not created, or that
// are being moved, are not errors.
func Look(ctx context.Context, cfg Config) (Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Report{}, err
	}
	l := newLook(cfg)
	l.each(func(i int) error { return l.host(ctx, i) })
	l.fetch(ctx, l.candidates())
	groups := l.groups()
	l.fetch(ctx, l.examples(groups))

	report := Report{Groups: l.report(groups), NotCreated: shards.SetOf(l.missing...), Moving: shards.SetOf(l.moving...)}
	return report, l.error()
}

// Lines returns the structure of one shard, as statements that would make it, sorted; see the package's documentation.
// The error is a [shards.HostError] if its host does not answer, and a [shards.ShardError] if it is not created.
func Lines(ctx context.Context, m *shards.Map, n shards.Number) ([]string, error) {
	cfg, err := Config{Map: m, Shards: shards.SetOf(n)}.withDefaults()
	if err != nil {
		return nil, err
	}
	l := newLook(cfg)
	l.each(func(i int) error { return l.host(ctx, i) })
	l.fetch(ctx, []shards.Number{n})
	switch {
	case l.errs[0] != nil:
		return nil, l.errs[0]
	case len(l.missing) > 0:
		return nil, &shards.ShardError{Shard: n, Schema: m.Schema(n), Host: m.Host(n).Name, Err: errors.New("it is not created")}
	case len(l.moving) > 0:
		return nil, &shards.ShardError{Shard: n, Schema: m.Schema(n), Host: m.Host(n).Name, Err: errors.New("it is being moved, and fenced: see kiloshard move status")}
	}
	texts := make([]string, len(l.lines[n]))
	for i, line := range l.lines[n] {
		texts[i] = line.Text
	}
	slices.Sort(texts)
	return texts, nil
}

// look is the state of one [Look].
type look struct {
	cfg  Config
	plan []fanout.Work
	errs []error // by plan: [shards.HostError]

	mu              sync.Mutex // guards what follows, while hosts are asked
	plain, numbered map[shards.Number]hash
	versions        map[shards.Number]int32
	lines           map[shards.Number]Structure // of examples
	missing, broken []shards.Number
	moving          []shards.Number
}

func newLook(cfg Config) *look {
	plan := fanout.Plan(cfg.Map, cfg.Shards)
	return &look{
		cfg: cfg, plan: plan, errs: make([]error, len(plan)),
		plain: map[shards.Number]hash{}, numbered: map[shards.Number]hash{},
		versions: map[shards.Number]int32{}, lines: map[shards.Number]Structure{},
	}
}

// each runs fn at once for all hosts that have not failed.
func (l *look) each(fn func(i int) error) {
	var wg sync.WaitGroup
	for i, w := range l.plan {
		if l.errs[i] != nil {
			continue
		}
		wg.Go(func() {
			if err := fn(i); err != nil {
				l.errs[i] = &shards.HostError{Host: w.Host.Name, Err: err}
			}
		})
	}
	wg.Wait()
}

// host reads the hashes and versions of a host's shards. Each batch has a session of its own, since a session caches the
// catalog entries that it has read until it ends.
func (l *look) host(ctx context.Context, i int) error {
	var fenced []shards.Number
	plain, numbered, versions := map[shards.Number]hash{}, map[shards.Number]hash{}, map[shards.Number]int32{}
	for batch := range slices.Chunk(l.plan[i].Shards, l.cfg.Batch) {
		err := with(ctx, l.cfg.Map, l.plan[i].Host, batch, func(s *session) error {
			prints, err := s.prints(ctx)
			for n, p := range prints {
				plain[n], numbered[n] = p[0].sum(), p[1].sum()
			}
			if err != nil {
				return err
			}
			found, err := s.versions(ctx)
			maps.Copy(versions, found)
			if err != nil {
				return err
			}
			some, err := s.fenced(ctx)
			fenced = append(fenced, some...)
			return err
		})
		if err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.plan[i].Shards {
		switch _, created := plain[n]; {
		case slices.Contains(fenced, n):
			l.moving = append(l.moving, n)
		case !created:
			l.missing = append(l.missing, n)
		case versions[n] == unknown:
			l.broken = append(l.broken, n)
		default:
			l.plain[n], l.numbered[n], l.versions[n] = plain[n], numbered[n], versions[n]
		}
	}
	return nil
}

// fetch fetches the structures of shards that l does not have yet.
func (l *look) fetch(ctx context.Context, wanted []shards.Number) {
	l.each(func(i int) error {
		var here []shards.Number
		for _, n := range wanted {
			l.mu.Lock()
			_, there := l.lines[n]
			l.mu.Unlock()
			if !there && l.cfg.Map.Host(n).Name == l.plan[i].Host.Name {
				here = append(here, n)
			}
		}
		if len(here) == 0 {
			return nil
		}
		return with(ctx, l.cfg.Map, l.plan[i].Host, here, func(s *session) error {
			found, err := s.structures(ctx)
			l.mu.Lock()
			defer l.mu.Unlock()
			maps.Copy(l.lines, found)
			return err
		})
	})
}

// examples returns the shards whose structures are needed for the groups' differences.
func (l *look) examples(groups []*group) []shards.Number {
	var examples []shards.Number
	for i, g := range groups {
		main := i == 0 || groups[i-1].version != g.version
		odd := i+1 < len(groups) && groups[i+1].version == g.version
		if main && odd || !main && len(examples) <= maxDifferences {
			examples = append(examples, g.example)
		}
	}
	return examples
}

// error returns the error for the hosts and shards that could not be read.
func (l *look) error() error {
	partial := &shards.PartialError{}
	var done, left []shards.Number
	for i, err := range l.errs {
		if err != nil {
			partial.Causes = append(partial.Causes, err)
		}
		for _, n := range l.plan[i].Shards {
			if _, there := l.plain[n]; there || slices.Contains(l.missing, n) || slices.Contains(l.moving, n) {
				done = append(done, n)
			} else if !slices.Contains(l.broken, n) {
				left = append(left, n)
			}
		}
	}
	slices.Sort(l.broken)
	for _, n := range l.broken {
		partial.Failed = append(partial.Failed, &shards.ShardError{Shard: n, Schema: l.cfg.Map.Schema(n), Host: l.cfg.Map.Host(n).Name, Err: errVersion})
	}
	if len(partial.Causes) == 0 && len(partial.Failed) == 0 {
		return nil
	}
	partial.Done, partial.NotAttempted = shards.SetOf(done...), shards.SetOf(left...)
	return partial
}
