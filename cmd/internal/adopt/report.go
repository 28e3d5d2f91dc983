package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/adopt/page"
)

// checkReport returns an error when the file of --report cannot be written, before the work begins. It leaves nothing behind.
func checkReport(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return cli.Usagef("--report %s: it is a directory, expected a file", path)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".kiloshard-*")
	if e := (*fs.PathError)(nil); errors.As(err, &e) { // it names the file that was tried
		err = e.Err
	}
	if err != nil {
		return cli.Usage(fmt.Errorf("--report %s: %w", path, err))
	}
	_ = probe.Close() // nothing was written
	return os.Remove(probe.Name())
}

// writeReport writes the HTML file of a report, or nothing if the path is empty.
func writeReport(path string, report page.Page) error {
	if path == "" {
		return nil
	}
	var text bytes.Buffer
	if err := report.WriteHTML(&text); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	return nil
}

// say prints a report for people, and for scripts the tables alone, one after the other. It is what the command is run for, so --quiet
// does not leave it out.
func say(a *cli.App, report page.Page) {
	line := func(format string, args ...any) {
		if a.Output == cli.Table {
			fmt.Fprintf(a.Stdout, format+"\n", args...)
		}
	}
	for _, fact := range report.Facts {
		line("%s", oneLine(fact))
	}
	for _, section := range report.Sections {
		line("\n%s", section.Head)
		if section.Note != "" {
			line("%s", section.Note)
		}
		rows := [][]string{append([]string{}, section.Columns...)}
		for _, row := range section.Rows {
			line := make([]string, len(row))
			for i, cell := range row {
				line[i] = oneLine(cell)
			}
			rows = append(rows, line)
		}
		a.Table(rows)
	}
}

// oneLine keeps the lines of a cell from breaking a table. What a name has of control characters is printed as escapes.
func oneLine(cell string) string {
	return string(bytes.ReplaceAll(bytes.ReplaceAll([]byte(cell), []byte("\n"), []byte(`\u000a`)), []byte("\t"), []byte(`\u0009`)))
}
