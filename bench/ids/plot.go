package ids

import (
	"gonum.org/v1/plot/plotter"

	"github.com/kiloshard/kiloshard/bench/internal/plots"
)

// The files that the Plot methods of reports write, each as SVG and as PNG.
const (
	plotIDs     = "ids-per-ms"  // IDs per millisecond over the number of sessions
	plotInserts = "insert-rate" // rows per second over the size of the table
)

// inPlot are the ways to make IDs that are plotted; all together would be unreadable.
var inPlot = []string{published, ours, ours16, oursMany, uuidv4, uuidv7}

// Plot writes the report's plots into a directory, and returns the paths of the files. It skips a plot with a single point
// in each line.
func (r *Report) Plot(dir string) ([]string, error) {
	return plots.Save(dir, []plots.Picture{
		{File: plotIDs, Title: "IDs per millisecond (PostgreSQL " + r.Server + ")", X: "sessions", Y: "IDs per ms", Log: true, Lines: r.idLines()},
		{File: plotInserts, Title: "Inserts into a table by its key (PostgreSQL " + r.Server + ")", X: "million rows in the table", Y: "thousand rows per second", Lines: r.insertLines()},
	})
}

func (r *Report) idLines() []plots.Line {
	var lines []plots.Line
	for _, name := range inPlot {
		l := plots.Line{Name: name}
		for _, f := range r.Rows {
			if f.Function == name {
				l.Points = append(l.Points, plotter.XY{X: float64(f.Sessions), Y: f.PerMs})
			}
		}
		lines = append(lines, l)
	}
	return lines
}

func (r *Report) insertLines() []plots.Line {
	var lines []plots.Line
	for _, f := range r.Inserts {
		l := plots.Line{Name: f.Key}
		for _, g := range f.Growth {
			l.Points = append(l.Points, plotter.XY{X: float64(g.Rows) / 1e6, Y: g.PerSecond / 1e3})
		}
		lines = append(lines, l)
	}
	return lines
}
