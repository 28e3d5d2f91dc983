package migrate

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql/special"
)

// HistoryEntry is the ledgers' record of one file in one run.
type HistoryEntry struct {
	Run       string
	Who       string // as the client said
	Role      string // of the server
	Direction string // up, down, force, or accept
	Version   int32
	File      string
	Began     time.Time     // in the first of its shards
	Took      time.Duration // until it was done in the last one
	Done      shards.Set
	Failed    shards.Set
	Error     string // of one of the failed shards
}

// History returns the ledgers' entries for the config's shards, the newest first. runs limits the number of runs, 0 for
// all; run names a single one, empty for all. A host without a ledger has no entries.
//
// The error joins a [shards.HostError] for each host that does not answer; the entries of the others are returned with it.
func History(ctx context.Context, cfg Config, runs int, run string) ([]HistoryEntry, error) {
	cfg.Files = embed.FS{} // not needed
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	sessions := &session.Pool{Logger: cfg.Logger}
	defer sessions.Close(ctx)
	plan := fanout.Plan(cfg.Map, cfg.Shards)
	found, errs := make([][]HistoryEntry, len(plan)), make([]error, len(plan))
	var wg sync.WaitGroup
	for i, work := range plan {
		wg.Go(func() {
			s, err := sessions.Take(ctx, work.Host)
			if err == nil {
				defer sessions.Give(s)
				found[i], err = readHistory(ctx, s, work.Shards, run)
			}
			if err != nil {
				errs[i] = &shards.HostError{Host: work.Host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return newestRuns(mergeHistory(slices.Concat(found...)), runs), errors.Join(errs...)
}

// readHistory reads one host's ledger.
func readHistory(ctx context.Context, s *session.Session, numbers []shards.Number, run string) ([]HistoryEntry, error) {
	there, err := s.Value(ctx, `select to_regclass('kiloshard.ledger') is not null`)
	if err != nil || there != "t" {
		return nil, err
	}
	query := fmt.Sprintf(`
		select coalesce(json_agg(e), '[]') from (
			select run, who, role, direction, version, file, min(began) as began,
				(extract(epoch from max(began + took) - min(began)) * 1e9)::bigint as took,
				coalesce(array_agg(distinct shard) filter (where error is null), '{}') as done,
				coalesce(array_agg(distinct shard) filter (where error is not null), '{}') as failed, coalesce(min(error), '') as error
			from kiloshard.ledger
			where statement is null and shard = any (%s) and (run = %[2]s or %[2]s = '')
			group by run, who, role, direction, version, file
		) e`, numbersText(shards.SetOf(numbers...)), sqltext.Quote(run))
	text, err := s.Value(ctx, special.Refuse("kiloshard.ledger")+query)
	if err != nil {
		return nil, connect.NameHolders(ctx, s.Conn, err)
	}
	var rows []struct {
		Run, Who, Role, Direction string
		Version                   int32
		File                      string
		Began                     time.Time
		Took                      time.Duration
		Done, Failed              []shards.Number
		Error                     string
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return nil, fmt.Errorf("its ledger: %w", err)
	}
	entries := make([]HistoryEntry, len(rows))
	for i, r := range rows {
		entries[i] = HistoryEntry{
			Run: r.Run, Who: r.Who, Role: r.Role, Direction: r.Direction, Version: r.Version, File: r.File, Began: r.Began.UTC(), Took: r.Took,
			Done: shards.SetOf(r.Done...), Failed: shards.SetOf(r.Failed...), Error: r.Error,
		}
	}
	return entries, nil
}

// mergeHistory merges the entries of the same file and run on several hosts, and sorts them: the newest run first, and
// within a run the newest entry first.
func mergeHistory(all []HistoryEntry) []HistoryEntry {
	began := map[string]time.Time{} // by run
	for _, e := range all {
		if first, ok := began[e.Run]; !ok || e.Began.Before(first) {
			began[e.Run] = e.Began
		}
	}
	compare := func(a, b HistoryEntry) int {
		return cmp.Or(began[b.Run].Compare(began[a.Run]), cmp.Compare(b.Run, a.Run), b.Began.Compare(a.Began))
	}
	type key struct {
		run, who, role, direction, file string
		version                         int32
	}
	at := map[key]int{}
	var merged []HistoryEntry
	for _, e := range all {
		k := key{e.Run, e.Who, e.Role, e.Direction, e.File, e.Version}
		i, ok := at[k]
		if !ok {
			at[k] = len(merged)
			merged = append(merged, e)
			continue
		}
		m := &merged[i]
		end := m.Began.Add(m.Took)
		if other := e.Began.Add(e.Took); other.After(end) {
			end = other
		}
		if e.Began.Before(m.Began) {
			m.Began = e.Began
		}
		m.Took, m.Error = end.Sub(m.Began), cmp.Or(m.Error, e.Error)
		m.Done = m.Done.Union(e.Done)
		m.Failed = m.Failed.Union(e.Failed)
	}
	slices.SortStableFunc(merged, compare)
	return merged
}

// newestRuns returns the entries of the first runs, all for 0.
func newestRuns(entries []HistoryEntry, runs int) []HistoryEntry {
	seen := 0
	for i, e := range entries {
		if i == 0 || e.Run != entries[i-1].Run {
			if seen++; runs > 0 && seen > runs {
				return entries[:i]
			}
		}
	}
	return entries
}
