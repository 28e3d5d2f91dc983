package provision_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestRepair changes functions by hand, and restores exactly these.
func TestRepair(t *testing.T) {
	t.Parallel()
	config := shardtest.MapConfig(4, shardtest.Hosts(t, 1))
	config.Generators = []shards.Generator{{Kind: shards.UUIDv4, Names: []string{"session"}}}
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), m.Hosts()[0].ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, change := range []string{
		"alter function shard_00000.next_id() immutable",
		"alter function shard_00000.next_ids(int) set search_path = public",
		"create or replace function shard_00001.next_id() returns bigint language plpgsql as 'begin return 1; end'",
		"revoke execute on function shard_00002.next_id(regclass) from public",
		"alter function shard_00002.next_session_id() stable",
		"alter function kiloshard.id_shard(bigint) volatile",
		"revoke execute on function kiloshard.id_sequence(bigint) from public",
	} {
		if _, err := conn.Exec(t.Context(), change); err != nil {
			t.Fatalf("%s: %v", change, err)
		}
	}
	differences := func() int {
		t.Helper()
		found, err := provision.Verify(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			if !strings.HasSuffix(d.Want, "; kiloshard upgrade --repair restores it") {
				t.Errorf("%s", d)
			}
		}
		return len(found)
	}
	if n := differences(); n != 7 {
		t.Errorf("%d differences, expected 7", n)
	}
	if report, err := provision.Upgrade(t.Context(), provision.UpgradeConfig{CreateConfig: provision.CreateConfig{Map: m}}); err != nil || report.Upgraded.Len() != 0 {
		t.Errorf("without repair: %v, %v", report, err)
	}
	repair := provision.UpgradeConfig{CreateConfig: provision.CreateConfig{Map: m, DryRun: true}, Repair: true}
	if report, err := provision.Upgrade(t.Context(), repair); err != nil || report.Upgraded.String() != "0-2" || len(report.Helpers) != 1 {
		t.Errorf("a dry run: %v, %v", report, err)
	}
	repair.DryRun = false
	if report, err := provision.Upgrade(t.Context(), repair); err != nil || report.Upgraded.String() != "0-2" || len(report.Helpers) != 1 {
		t.Errorf("repair: %v, %v", report, err)
	}
	if n := differences(); n != 0 {
		t.Errorf("%d differences afterwards", n)
	}
	if report, err := provision.Upgrade(t.Context(), repair); err != nil || report.Upgraded.Len() != 0 || len(report.Helpers) != 0 {
		t.Errorf("once more: %v, %v", report, err)
	}
}
