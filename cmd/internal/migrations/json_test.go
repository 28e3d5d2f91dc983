package migrations

import (
	"errors"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/golden"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestJSON compares the JSON of the commands with files, of reports with all fields and of ones with none.
func TestJSON(t *testing.T) {
	t.Parallel()
	m, err := shardtest.MapConfig(4, []shards.Host{{Name: "pg-a", DSN: "postgres://a/app"}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	changed := []migrate.ChangedFile{{Version: 2, File: "002_old.sql", Now: "002_new.sql", Shards: shards.SetOf(1, 2)}}
	run := migrate.Report{
		Run: "the-run", Target: 3, Done: shards.SetOf(0, 1), UpToDate: shards.SetOf(2), Steps: []migrate.Step{{From: 1, To: 3, Shards: shards.SetOf(0, 1)}},
		Shared: []migrate.SharedFile{{File: "001_a.sql", Hosts: []string{"pg-a"}}}, Changed: changed, TriedAgain: 4,
		BareNames: []migrate.BareName{{Caller: "constraint c", Function: "f()", Name: "photos"}}, Elapsed: 1500 * time.Millisecond,
		Donor: &snapshot.Donor{Shard: 1, Alike: 2, Of: 3},
	}
	replayed := migrate.Report{Run: "the-run", NoSnapshot: errors.New("a view & more")}
	entry := migrate.HistoryEntry{
		Run: "the-run", Who: "me", Role: "app", Direction: "up", Version: 2, File: "002_b.sql", Began: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Took: 1500 * time.Millisecond, Done: shards.SetOf(0, 1), Failed: shards.SetOf(2), Error: "no",
	}
	plan := migrate.PlanReport{
		Target: 2, UpToDate: shards.SetOf(3), Sample: &migrate.SampleShard{Shard: 2, Schema: "shard_00002", Host: "pg-a"}, Changed: changed,
		Groups:    []migrate.PlanGroup{{From: 1, To: 2, Shards: shards.SetOf(0, 1, 2), Hosts: []migrate.PlanHost{{Host: "pg-a", Shards: shards.SetOf(0, 1, 2)}}, Files: []string{"002_b.sql"}}},
		Files:     []migrate.PlanFile{{Version: 2, Name: "002_b.sql", SQL: "drop table photos", Line: 1, Shards: 3}},
		Templates: []migrate.TemplateRisk{{Kind: migrate.TemplateVaries, File: "002_b.sql", Line: 4, Text: "{{now}}"}},
	}
	status := migrate.StatusReport{
		Files: []string{"001_a.sql", "002_b.sql"}, Changed: changed, Unwritten: []string{"002_b.sql"},
		Hosts: []migrate.HostStatus{
			{Host: "pg-a", Versions: []migrate.VersionStatus{{Version: 1, Pending: 1, Shards: shards.SetOf(0, 1)}}, NotCreated: shards.SetOf(2)},
			{Host: "pg-b", Err: errors.New("no route")},
		},
	}
	structures := drift.Report{NotCreated: shards.SetOf(3), Moving: shards.SetOf(2), Groups: []drift.Group{
		{Version: 1, Main: true, Fingerprint: "0123456789abcdef", Shards: shards.SetOf(0), Hosts: []drift.HostShards{{Host: "pg-a", Shards: shards.SetOf(0)}}, Differences: []string{}},
		{Version: 1, Fingerprint: "fedcba9876543210", Shards: shards.SetOf(1), Hosts: []drift.HostShards{{Host: "pg-a", Shards: shards.SetOf(1)}}, Example: 1, Differences: []string{"+ table x"}},
	}}
	for name, print := range map[string]func(*cli.App) error{
		"run":           func(a *cli.App) error { return printRun(a, m, run, nil) },
		"run_replayed":  func(a *cli.App) error { return printRun(a, m, replayed, nil) },
		"history":       func(a *cli.App) error { return printMigrateHistory(a, []migrate.HistoryEntry{entry}, true) },
		"history_empty": func(a *cli.App) error { return printMigrateHistory(a, nil, true) },
		"plan":          func(a *cli.App) error { return printPlan(a, m, newPlanResult(m, plan, nil), nil, false) },
		"plan_empty": func(a *cli.App) error {
			return printPlan(a, m, newPlanResult(m, migrate.PlanReport{Target: 1}, nil), nil, false)
		},
		"status":       func(a *cli.App) error { return printMigrateStatus(a, migrate.Config{Map: m}, status) },
		"status_empty": func(a *cli.App) error { return printMigrateStatus(a, migrate.Config{Map: m}, migrate.StatusReport{}) },
		"drift":        func(a *cli.App) error { return printDrift(a, structures, nil) },
		"accept":       func(a *cli.App) error { return printAccepted(a, changed, nil) },
		"accept_empty": func(a *cli.App) error { return printAccepted(a, nil, nil) },
	} {
		golden.JSON(t, name, print)
	}
}
