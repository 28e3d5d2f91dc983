package migrations

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/htmlreport"
	"github.com/kiloshard/kiloshard/shards"
)

// migrateReport is the HTML file of a migration run, or nothing when its path is empty.
type migrateReport struct {
	path      string
	collector htmlreport.Collector
}

func newMigrateReport(path string) *migrateReport { return &migrateReport{path: path} }

// check returns an error when the file cannot be written, before the run begins. It leaves nothing behind.
func (r *migrateReport) check() error {
	if r.path == "" {
		return nil
	}
	if info, err := os.Stat(r.path); err == nil && info.IsDir() {
		return cli.Usagef("--report %s: it is a directory, expected a file", r.path)
	}
	probe, err := os.CreateTemp(filepath.Dir(r.path), ".kiloshard-*")
	if err != nil {
		return cli.Usage(fmt.Errorf("--report: %w", err))
	}
	_ = probe.Close() // nothing was written
	return os.Remove(probe.Name())
}

// Event must be called with all events of the run.
func (r *migrateReport) Event(e migrate.Event) {
	if r.path != "" {
		r.collector.Event(e)
	}
}

// write writes the file when the run is over, wholly or not at all. partial may be nil.
func (r *migrateReport) write(report migrate.Report, partial *shards.PartialError, m *shards.Map) error {
	if r.path == "" {
		return nil
	}
	var page bytes.Buffer
	if err := r.collector.Write(&page, m, report, partial); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	if err := os.WriteFile(r.path, page.Bytes(), 0o644); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	return nil
}
