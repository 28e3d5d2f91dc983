package htmlreport

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

//go:embed report.html
var source string

var page = template.Must(template.New("report").Parse(source))

// Write writes the file for a run that migrate.Up or migrate.Down returned from: with its report and, if not all
// shards are done, its error; partial may be nil. m is the map of the run. Everything that came from elsewhere,
// such as what a server said, is escaped. When w fails, a part of the file may be written; the error is w's.
func (c *Collector) Write(w io.Writer, m *shards.Map, report migrate.Report, partial *shards.PartialError) error {
	if partial == nil {
		partial = &shards.PartialError{}
	}
	var out bytes.Buffer
	if err := page.Execute(&out, newView(c.snapshot(), m, report, partial)); err != nil {
		return err
	}
	_, err := out.WriteTo(w)
	return err
}
