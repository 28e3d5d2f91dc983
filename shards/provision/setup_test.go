package provision_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// build returns the map of a config.
func build(t *testing.T, c shards.Config) *shards.Map {
	t.Helper()
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newMap returns a map of two empty hosts.
func newMap(t *testing.T, count int) *shards.Map {
	t.Helper()
	return build(t, shardtest.MapConfig(count, shardtest.Hosts(t, 2)))
}

// created returns a map whose shards exist.
func created(t *testing.T, count int) *shards.Map {
	t.Helper()
	return shardtest.New(t, shardtest.Config{Shards: count}).Map
}

func create(t *testing.T, m *shards.Map) provision.CreateReport {
	t.Helper()
	report, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// checkComplete checks that verify finds nothing.
func checkComplete(t *testing.T, m *shards.Map) {
	t.Helper()
	differences, err := provision.Verify(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences {
		t.Errorf("unexpected difference: %s", d)
	}
}

// on runs a statement on a host and returns the first column of its rows, as text.
func on(t *testing.T, host shards.Host, statement string) []string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // for clean-up
	conn, err := pgx.Connect(ctx, host.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, statement, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	values, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		return string(row.RawValues()[0]), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return values
}
