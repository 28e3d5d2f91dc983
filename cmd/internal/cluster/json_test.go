package cluster

import (
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/golden"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestJSON compares the JSON of the commands with files, of reports with all fields and of ones with none.
func TestJSON(t *testing.T) {
	t.Parallel()
	m, err := shardtest.MapConfig(8, []shards.Host{{Name: "pg-a", DSN: "postgres://a/app"}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	created := provision.CreateReport{
		Created: shards.SetOf(0, 1), Completed: shards.SetOf(2), Upgraded: shards.SetOf(3), Existed: shards.SetOf(4, 5),
		Generators: []string{"photo on pg-a"}, Extensions: []string{"citext on pg-a"}, Copies: []provision.Copies{{Host: "pg-b", Home: "pg-a", Shards: shards.SetOf(6, 7)}},
	}
	upgraded := provision.UpgradeReport{
		Helpers: []string{"pg-a"}, Extensions: []string{"citext on pg-a"}, Upgraded: shards.SetOf(0, 1), Current: shards.SetOf(2), Missing: shards.SetOf(3),
	}
	grant := provision.GrantConfig{Role: "app", ReadOnly: true}
	partial := &shards.PartialError{
		Failed:       []*shards.ShardError{{Shard: 1, Schema: "shard_00001", Host: "pg-a", Err: shards.ErrNoShard}},
		NotAttempted: shards.SetOf(5, 6),
	}
	verified := verifyResult{
		ShardCount: 8, HostCount: 2, Moving: shards.SetOf(4), Unreached: []unreachedHost{{Host: "pg-b", Error: "connection refused"}},
		Differences: []verifyDifference{
			{Difference: provision.Difference{Kind: provision.KindMissing, Host: "pg-a", Schema: "shard_00003", Found: "no such schema", Want: "the shard"}},
			{Difference: provision.Difference{Kind: kindStructure, Host: "pg-a", Schema: "shard_00001 and 1 more", Found: "an index", Want: "none"}, Shards: new(shards.SetOf(1, 2))},
		},
		Rivals: []provision.Rival{{Host: "pg-a", Primary: "10.0.0.2:5432", PrimaryTimeline: 2, Address: "10.0.0.1:5432", Timeline: 1}},
	}
	same := verifyResult{ShardCount: 8, HostCount: 2, Differences: []verifyDifference{}, Unreached: []unreachedHost{}, Rivals: []provision.Rival{}}
	for name, print := range map[string]func(*cli.App) error{
		"verify":        func(a *cli.App) error { return a.Print(verified, nil) },
		"verify_empty":  func(a *cli.App) error { return a.Print(same, nil) },
		"create":        func(a *cli.App) error { return printCreated(a, m, false, created, partial, 1500*time.Millisecond) },
		"create_empty":  func(a *cli.App) error { return printCreated(a, m, true, provision.CreateReport{}, nil, time.Second) },
		"upgrade":       func(a *cli.App) error { return printUpgraded(a, true, upgraded, partial, 1500*time.Millisecond) },
		"upgrade_empty": func(a *cli.App) error { return printUpgraded(a, false, provision.UpgradeReport{}, nil, time.Second) },
		"grant": func(a *cli.App) error {
			return printGranted(a, grant, provision.GrantReport{Done: shards.SetOf(0), Missing: shards.SetOf(1)}, partial, time.Second)
		},
		"grant_empty": func(a *cli.App) error {
			return printGranted(a, provision.GrantConfig{}, provision.GrantReport{}, nil, time.Second)
		},
	} {
		golden.JSON(t, name, print)
	}
}
