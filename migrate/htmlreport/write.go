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

// Write writes the file for a finished run of migrate.Up or migrate.Down, from its report and its error; partial is nil if
// all shards are done. m is the map of the run. It escapes all data, such as a server's messages. If w fails, the error
// is w's, and a part of the file may be written.
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
