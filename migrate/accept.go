package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// Accept records in the ledgers that the directory's files of some versions, as they are now, are what the shards ran.
// Use it after a file was renamed, or edited without effect on migrated shards. It runs no file. It returns the accepted
// files under the names that the shards ran; none if the ledgers hold the files as they are.
//
// Each host is one transaction. The error joins a [shards.HostError] for each host that failed. A version without a file
// is [ErrNoFile], and then Accept contacts no host.
func Accept(ctx context.Context, cfg Config, versions ...int32) ([]ChangedFile, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := readDirectory(cfg.Map, cfg.Files, first(cfg.Shards), cfg.TemplateEnv, cfg.Logger)
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		if d.nameOf(version) == "" {
			return nil, fmt.Errorf("version %d: expected that of a file, 1 to %d: %w", version, d.newest(), ErrNoFile)
		}
	}
	sessions := &sessions{logger: cfg.Logger}
	defer sessions.close(ctx)
	run := newRunID(time.Now())
	plan := fanout.Plan(cfg.Map, cfg.Shards)
	accepted, errs := make([][]ChangedFile, len(plan)), make([]error, len(plan))
	var wg sync.WaitGroup
	for i, work := range plan {
		wg.Go(func() {
			some, err := d.acceptOn(ctx, sessions, cfg, run, work, versions)
			if accepted[i] = some; err != nil {
				errs[i] = &shards.HostError{Host: work.Host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	var all []ChangedFile
	for _, some := range accepted {
		all = mergeChanges(all, some)
	}
	return all, errors.Join(errs...)
}

// ErrNoFile says that no file has a version.
var ErrNoFile = errors.New("no such migration")

// acceptOn accepts versions on one host. A new entry replaces each current one with another checksum.
func (d *directory) acceptOn(ctx context.Context, sessions *sessions, cfg Config, run string, work fanout.Work, versions []int32) ([]ChangedFile, error) {
	s, err := sessions.take(ctx, work.Host)
	if err != nil {
		return nil, err
	}
	defer sessions.give(s)
	if err := s.keepLedger(ctx, cfg.Map.Schemas(work.Shards)); err != nil {
		return nil, err
	}
	inv := inventory{Work: work}
	if err := s.inventory(ctx, cfg.Map, d, &inv); err != nil {
		return nil, err
	}
	changed := slices.DeleteFunc(inv.changed, func(c ChangedFile) bool { return !slices.Contains(versions, c.Version) })
	script := "begin; " + lockWait + "select"
	for _, c := range changed {
		script += fmt.Sprintf(`;
			with before as (
				update kiloshard.ledger set current = false
				where current and statement is null and version = %[1]d and file = %[2]s and checksum <> %[3]s and shard = any (%[4]s)
				returning shard
			)
			insert into kiloshard.ledger (run, who, shard, version, file, direction, checksum, began, took, current)
			select distinct %[5]s, %[6]s, shard, %[1]d, %[7]s, 'accept', %[3]s, clock_timestamp(), interval '0', true from before`,
			c.Version, quote(c.File), quote(d.checksums[c.Version-1]), numbersText(c.Shards), quote(run), quote(cfg.By), quote(c.Now))
	}
	if _, err := s.conn.Exec(ctx, script+"; commit").ReadAll(); err != nil {
		err = connect.NameHolders(ctx, s.conn, err)
		s.recover(ctx)
		return nil, err
	}
	return changed, nil
}

// numbersText returns the shards as an SQL array.
func numbersText(set shards.Set) string {
	text := ""
	for n := range set.All() {
		text += fmt.Sprintf(",%d", n)
	}
	return "'{" + text[min(1, len(text)):] + "}'::int[]"
}
