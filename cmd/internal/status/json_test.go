package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/golden"
	"github.com/kiloshard/kiloshard/cmd/internal/moves"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// twoPrimaries is a host with two primaries, and with standbys of both.
func twoPrimaries() hostStatus {
	return hostStatus{
		Host: "pg-a", Address: "10.0.0.1:5432,10.0.0.2:5432/app", Up: true, Postgres: "17.2", ShardCount: 3, Expected: 4,
		Missing: shards.SetOf(3), Strays: shards.SetOf(7), MissingExtensions: []string{"citext"},
		Versions: []migrate.VersionStatus{{Version: 2, Pending: 1, Shards: shards.SetOf(0, 1, 2)}},
		Bytes:    1_000_000, Replicas: 1, LagSeconds: 0.25, Sessions: 5,
		Addresses: addressesOf([]provision.AddressStatus{
			{Address: "10.0.0.1:5432", Timeline: 1, Rival: true},
			{Address: "10.0.0.2:5432", Timeline: 2, Primary: true},
			{Address: "10.0.0.3:5432", Timeline: 1, Recovery: true, OtherTimeline: true},
			{Address: "10.0.0.4:5432", Err: errors.New("connection refused")},
		}, roleOldPrimary),
		MapReplicas: addressesOf([]provision.AddressStatus{
			{Address: "10.0.0.5:5432", Timeline: 2, Recovery: true},
			{Address: "10.0.0.6:5432", Timeline: 4, Recovery: true, OtherCluster: true},
			{Address: "10.0.0.7:5432", Timeline: 3, Rival: true},
		}, rolePromoted),
		Rivals: []provision.Rival{
			{Host: "pg-a", Primary: "10.0.0.2:5432", PrimaryTimeline: 2, Address: "10.0.0.1:5432", Timeline: 1},
			{Host: "pg-a", Primary: "10.0.0.2:5432", PrimaryTimeline: 2, Address: "10.0.0.7:5432", Timeline: 3, Replica: true},
		},
		Standbys: []standbyStatus{{Name: "second", State: "streaming", LagSeconds: 0.25}},
	}
}

// TestJSON compares the JSON of status with a file, of a host with all fields and of one that is down.
func TestJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	result := statusResult{
		Cluster: "photos", ShardCount: 8,
		Map:      mapStatus{Store: "file kiloshard.yaml", MapVersion: cli.MapVersion{Version: 3, At: at, By: "alice", Why: "a second host"}},
		Hosts:    []hostStatus{twoPrimaries(), {Host: "pg-b", Address: "10.0.0.8:5432/app", Error: "connection refused", Expected: 4, Versions: []migrate.VersionStatus{}}},
		Counters: []counterStatus{}, Leads: []leadStatus{}, Moves: []moves.Row{},
	}
	golden.JSON(t, "status", func(a *cli.App) error { return a.Print(result, nil) })
}

// For people, what is no part of the primary's cluster or timeline is marked, and said in a line.
func TestServersForPeople(t *testing.T) {
	t.Parallel()
	h := twoPrimaries()
	var roles []string
	for _, row := range addressRows([]hostStatus{h})[1:] {
		roles = append(roles, row[2])
	}
	want := "old primary, primary, standby of timeline 1, down, standby, standby of another cluster, promoted"
	if got := strings.Join(roles, ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var said strings.Builder
	warnOfServers(&cli.App{Stderr: &said}, &h)
	for _, want := range []string{
		"host pg-a has two primaries, 10.0.0.2:5432 on timeline 2 and 10.0.0.1:5432 on timeline 1: ",
		"host pg-a has two primaries, 10.0.0.2:5432 on timeline 2 and 10.0.0.7:5432 on timeline 3, a replica in the map: ",
		"standby 10.0.0.3:5432 of host pg-a is on timeline 1, another than the primary's: ",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("got %s, want %q in it", said.String(), want)
		}
	}
	if n := strings.Count(said.String(), "\n"); n != 3 {
		t.Errorf("%d lines: %s", n, said.String())
	}
}
