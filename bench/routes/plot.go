package routes

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/kiloshard/kiloshard/bench/internal/plots"
)

const partMany = "many" // the part that is drawn

// plotFile is the file of the plot, without its ending: calls per second over the number of goroutines.
const plotFile = "route-calls-per-second"

// Plot writes the plot of the part many into a directory, and returns the paths of the files: calls per second over the
// number of goroutines. It writes none if that part did not run, or ran with one number of goroutines.
func (r *Report) Plot(dir string) ([]string, error) {
	title := fmt.Sprintf("Selects by primary key, %d connections (PostgreSQL %s)", r.Conns, r.Server)
	return plots.Save(dir, []plots.Picture{{File: plotFile, Title: title, X: "goroutines", Y: "thousand calls per second", Log: true, Lines: r.lines()}})
}

// lines returns the line of pgxpool, and one for each of our rows.
func (r *Report) lines() []plots.Line {
	plain := plots.Line{Name: "pgxpool"}
	var ours []plots.Line
	for _, row := range r.Rows {
		if row.Part != partMany || row.Metric != perSecond {
			continue
		}
		x := float64(row.Goroutines)
		// Both rows of ours are beside the same turns of pgxpool.
		if !slices.ContainsFunc(plain.Points, func(p plotter.XY) bool { return p.X == x }) {
			plain.Points = append(plain.Points, plotter.XY{X: x, Y: *row.Plain / 1000})
		}
		name := "kiloshard: " + row.What
		i := slices.IndexFunc(ours, func(l plots.Line) bool { return l.Name == name })
		if i < 0 {
			i, ours = len(ours), append(ours, plots.Line{Name: name})
		}
		ours[i].Points = append(ours[i].Points, plotter.XY{X: x, Y: row.Ours / 1000})
	}
	if len(ours) == 0 {
		return nil
	}
	return append([]plots.Line{plain}, ours...)
}
