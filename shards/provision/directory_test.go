package provision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A directory's tables are created in existing shards, and their rows stay.
func TestCreateMakesDirectory(t *testing.T) {
	t.Parallel()
	c := shardtest.MapConfig(8, shardtest.Hosts(t, 2))
	m := build(t, c)
	create(t, m)
	c.Strategy = shards.Strategy{By: shards.Directory, Otherwise: &shards.Strategy{By: shards.Modulo}}
	m = build(t, c)
	if differences, err := provision.Verify(t.Context(), m); err != nil || len(differences) != 16 {
		t.Errorf("%d differences before, %v; expected two tables of each shard", len(differences), err)
	}
	if report := create(t, m); report.Completed.Len() != 8 {
		t.Errorf("completed %s of 8 shards", report.Completed)
	}
	checkComplete(t, m)

	host := m.Hosts()[0]
	on(t, host, "insert into shard_00001.kiloshard_directory (key, shard) values ('alice', 7)")
	on(t, host, "update shard_00001.kiloshard_usage set keys = 12")
	if report := create(t, m); report.Created.Len()+report.Completed.Len() != 0 {
		t.Errorf("a second create made %s", report.Created)
	}
	on(t, host, "drop table shard_00002.kiloshard_usage")
	on(t, host, "alter table shard_00002.kiloshard_directory drop column since")
	on(t, host, "alter table shard_00003.kiloshard_directory drop constraint kiloshard_directory_pkey")
	differences, err := provision.Verify(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range differences {
		got = append(got, fmt.Sprintf("%s %s %s", d.Kind, d.Schema, d.Found))
	}
	want := []string{
		"directory shard_00002 kiloshard_directory has key text, shard integer",
		"directory shard_00002 kiloshard_usage is missing",
		"directory shard_00003 kiloshard_directory has key text, shard integer, since timestamp with time zone, no primary key",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	create(t, m) // creates the missing tables only
	const query = `select shard || ' ' || keys from shard_00001.kiloshard_directory, shard_00001.kiloshard_usage`
	if got := on(t, host, query); !slices.Equal(got, []string{"7 12"}) {
		t.Errorf("after another create: %q", got)
	}
	if got := on(t, host, "select keys::text from shard_00002.kiloshard_usage"); !slices.Equal(got, []string{"0"}) {
		t.Errorf("a table that was made anew: %q", got)
	}
}
