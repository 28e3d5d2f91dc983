package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/ledger"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
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
	d, err := files.Read(cfg.Map, cfg.Files, first(cfg.Shards), cfg.TemplateEnv, cfg.Logger)
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		if d.NameOf(version) == "" {
			return nil, fmt.Errorf("version %d: expected that of a file, 1 to %d: %w", version, d.Newest(), ErrNoFile)
		}
	}
	sessions := &session.Pool{Logger: cfg.Logger}
	defer sessions.Close(ctx)
	run := ledger.NewRun(time.Now())
	plan := fanout.Plan(cfg.Map, cfg.Shards)
	accepted, errs := make([][]ChangedFile, len(plan)), make([]error, len(plan))
	var wg sync.WaitGroup
	for i, work := range plan {
		wg.Go(func() {
			some, err := acceptOn(ctx, d, sessions, cfg, run, work, versions)
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

// acceptOn accepts versions on one host. A new entry replaces each current one with another checksum.
func acceptOn(ctx context.Context, d *files.Directory, sessions *session.Pool, cfg Config, run string, work fanout.Work, versions []int32) ([]ChangedFile, error) {
	s, err := sessions.Take(ctx, work.Host)
	if err != nil {
		return nil, err
	}
	defer sessions.Give(s)
	if err := ledger.Keep(ctx, s, cfg.Map.Schemas(work.Shards)); err != nil {
		return nil, err
	}
	inv := inventory{Work: work}
	if err := readInventory(ctx, s, cfg.Map, d, &inv); err != nil {
		return nil, err
	}
	changed := slices.DeleteFunc(inv.changed, func(c ChangedFile) bool { return !slices.Contains(versions, c.Version) })
	script := "begin; " + session.LockWait + "select"
	for _, c := range changed {
		script += fmt.Sprintf(`;
			with before as (
				update kiloshard.ledger set current = false
				where current and statement is null and version = %[1]d and file = %[2]s and checksum <> %[3]s and shard = any (%[4]s)
				returning shard
			)
			insert into kiloshard.ledger (run, who, shard, version, file, direction, checksum, began, took, current)
			select distinct %[5]s, %[6]s, shard, %[1]d, %[7]s, 'accept', %[3]s, clock_timestamp(), interval '0', true from before`,
			c.Version, sqltext.Quote(c.File), sqltext.Quote(d.Checksums[c.Version-1]), numbersText(c.Shards), sqltext.Quote(run), sqltext.Quote(cfg.By), sqltext.Quote(c.Now))
	}
	if _, err := s.Conn.Exec(ctx, script+"; commit").ReadAll(); err != nil {
		err = connect.NameHolders(ctx, s.Conn, err)
		s.Recover(ctx)
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
