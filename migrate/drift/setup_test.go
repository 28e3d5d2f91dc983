package drift_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// migrated returns the map of a cluster with migrations of the given texts.
func migrated(t *testing.T, count int, migrations ...string) *shards.Map {
	t.Helper()
	files := fstest.MapFS{}
	for i, text := range migrations {
		files["00"+string(rune('1'+i))+"_test.sql"] = &fstest.MapFile{Data: []byte(text)}
	}
	cfg := shardtest.Config{Shards: count}
	if len(files) > 0 {
		cfg.Migrations = files
	}
	return shardtest.New(t, cfg).Map
}

// exec runs statements in some shards.
func exec(t *testing.T, m *shards.Map, statements string, numbers ...shards.Number) {
	t.Helper()
	for _, n := range numbers {
		if err := execAlone(t, m.Host(n), "set search_path = "+m.SearchPath(n)+"; "+statements); err != nil {
			t.Fatal(err)
		}
	}
}

// execAlone runs one statement on a host, not in a transaction.
func execAlone(t *testing.T, host shards.Host, statement string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), host.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), statement)
	return err
}

func look(t *testing.T, m *shards.Map) drift.Report {
	t.Helper()
	report, err := drift.Look(t.Context(), drift.Config{Map: m})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// checkAlike checks that all shards are one group.
func checkAlike(t *testing.T, m *shards.Map) {
	t.Helper()
	report := look(t, m)
	if len(report.Groups) != 1 || report.Drift() || report.Groups[0].Shards.Len() != m.Len() {
		t.Errorf("got %d groups, expected one of all shards:", len(report.Groups))
		for _, g := range report.Groups {
			t.Errorf("version %d: shards %s: %s", g.Version, g.Shards, strings.Join(g.Differences, "\n"))
		}
	}
}

// checkDrift checks that all shards are alike but some, which differ so.
func checkDrift(t *testing.T, m *shards.Map, odd string, want ...string) {
	t.Helper()
	checkGroups(t, look(t, m), m.Len(), odd, want...)
}

// checkGroups checks that of so many shards all are alike but some, which differ so.
func checkGroups(t *testing.T, report drift.Report, count int, odd string, want ...string) {
	t.Helper()
	if len(report.Groups) != 2 || !report.Drift() {
		t.Fatalf("got %d groups, expected 2: %+v", len(report.Groups), report.Groups)
	}
	main, other := report.Groups[0], report.Groups[1]
	if !main.Main || other.Main || other.Shards.String() != odd || main.Fingerprint == other.Fingerprint || main.Shards.Len()+other.Shards.Len() != count {
		t.Errorf("got the odd shards %s, expected %s: %+v", other.Shards, odd, report.Groups)
	}
	if len(main.Differences) > 0 {
		t.Errorf("the main group differs: %q", main.Differences)
	}
	if !slices.Equal(other.Differences, want) {
		t.Errorf("got\n%s\nexpected\n%s", strings.Join(other.Differences, "\n"), strings.Join(want, "\n"))
	}
}
