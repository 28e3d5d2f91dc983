// Package migrations is kiloshard-lab bench migrate: migrate.Up beside other ways to migrate all shards.
package migrations

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/server"
)

// Run brings shards from version 0 to version 1, which is one table with an index: by migrate.Up, by tern's own
// Migrator in a loop, by the loop of a tool like goose, and by PL/pgSQL loops inside the servers. One loop in each
// server is the floor; the other way has as many loops in each as the others have sessions.
//
// The shards are created once. Up migrates all of them, in clones of those databases. The other ways share other clones,
// where each migrates a sample of each host's shards, and the order changes with each round. Run makes a checkpoint before
// each turn, and checks the versions of all shards after it.
//
// Each way runs as its users run it. Each commit of tern and of the goose-style loop waits for the disk. Up and the loops
// inside the servers commit without waiting, and end with one commit on each host that waits, which flushes all earlier
// commits. The servers keep their fsync setting, so Postgres may flush each new index when it builds it.
//
// Run drops the databases that it created, except those of NewHosts.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	if cfg.Delay < 0 || cfg.Delay%time.Millisecond != 0 {
		return nil, fmt.Errorf("delay %s: expected whole milliseconds", cfg.Delay)
	}
	cfg.Progress(fmt.Sprintf("making %d shards", cfg.Shards))
	t, err := newTemplate(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if least := len(t.controls) * len(otherWays()); cfg.Shards < least {
		return nil, fmt.Errorf("%d shards: expected %d or more", cfg.Shards, least)
	}
	b := &bench{cfg: cfg, template: t, report: Report{Shards: cfg.Shards, Hosts: len(t.controls), Workers: cfg.Workers, Rounds: rounds}}
	if b.report.Server, _, err = server.Version(ctx, t.controls[0]); err != nil {
		return nil, err
	}
	delays := []time.Duration{0}
	if cfg.Delay > 0 {
		delays = append(delays, cfg.Delay)
	}
	for _, delay := range delays {
		table, err := b.compare(ctx, delay)
		if err != nil {
			return nil, err
		}
		b.report.Tables = append(b.report.Tables, table)
	}
	return &b.report, nil
}
