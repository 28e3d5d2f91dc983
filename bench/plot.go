package bench

import (
	"gonum.org/v1/plot/plotter"

	"github.com/kiloshard/kiloshard/bench/internal/plots"
)

// The files that the Plot methods of reports write, each as SVG and as PNG.
const (
	PlotIDs     = "ids-per-ms"  // IDs per millisecond over the number of sessions
	PlotInserts = "insert-rate" // rows per second over the size of the table
)

// inPlot are the ways to make IDs that are plotted; all together would be unreadable.
var inPlot = []string{Published, Ours, Ours16, OursMany, UUIDv4, UUIDv7}

// Plot writes the report's plots into a directory, and returns the paths of the files. It skips a plot with a single point
// in each line.
func (r *IDsReport) Plot(dir string) ([]string, error) {
	return plots.Save(dir, []plots.Picture{
		{File: PlotIDs, Title: "IDs per millisecond (PostgreSQL " + r.Server + ")", X: "sessions", Y: "IDs per ms", Log: true, Lines: r.idLines()},
		{File: PlotInserts, Title: "Inserts into a table by its key (PostgreSQL " + r.Server + ")", X: "million rows in the table", Y: "thousand rows per second", Lines: r.insertLines()},
	})
}

func (r *IDsReport) idLines() []plots.Line {
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

func (r *IDsReport) insertLines() []plots.Line {
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
