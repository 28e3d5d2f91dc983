package migrations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMigrateReport(t *testing.T) {
	t.Parallel()
	m, err := shardtest.MapConfig(4, []shards.Host{{Name: "pg-a", DSN: "postgres://a/app"}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "run.html")
	for _, report := range []*migrateReport{newMigrateReport(""), newMigrateReport(path)} {
		if err := report.check(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("before the run there is %v, %v", left, err)
		}
		report.Event(migrate.Event{Kind: migrate.ShardDone, Shard: 1, From: 0, To: 7})
		if err := report.write(migrate.Report{Run: "the-run", Done: shards.SetOf(1)}, nil, m); err != nil {
			t.Error(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(page), "the-run") || !strings.Contains(string(page), "version 0 → 7") {
		t.Errorf("got %s, %v", page, err)
	}

	for _, wrong := range []string{dir, filepath.Join(dir, "nowhere", "run.html")} {
		if err := newMigrateReport(wrong).check(); err == nil || !strings.Contains(err.Error(), wrong[:len(dir)]) {
			t.Errorf("%s: got %v", wrong, err)
		}
		if err := newMigrateReport(wrong).write(migrate.Report{}, nil, m); err == nil {
			t.Errorf("%s: it was written", wrong)
		}
	}
}
