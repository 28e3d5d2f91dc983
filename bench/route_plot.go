package bench

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// Plot writes the plot of the part many into a directory, and returns the paths of the files: calls per second over the
// number of goroutines. It writes none if that part did not run, or ran with one number of goroutines.
func (r *RouteReport) Plot(dir string) ([]string, error) {
	title := fmt.Sprintf("Selects by primary key, %d connections (PostgreSQL %s)", r.Conns, r.Server)
	return save(dir, []picture{{PlotRoute, title, "goroutines", "thousand calls per second", true, r.lines()}})
}

// lines returns the lines of pgxpool and of each of our ways.
func (r *RouteReport) lines() []line {
	plain := line{name: "pgxpool"}
	var ours []line
	for _, row := range r.Rows {
		if row.Part != partMany || row.Metric != perSecond {
			continue
		}
		x := float64(row.Goroutines)
		// Every way of ours is beside the same turns of pgxpool.
		if !slices.ContainsFunc(plain.points, func(p plotter.XY) bool { return p.X == x }) {
			plain.points = append(plain.points, plotter.XY{X: x, Y: *row.Plain / 1000})
		}
		name := "kiloshard: " + row.What
		i := slices.IndexFunc(ours, func(l line) bool { return l.name == name })
		if i < 0 {
			i, ours = len(ours), append(ours, line{name: name})
		}
		ours[i].points = append(ours[i].points, plotter.XY{X: x, Y: row.Ours / 1000})
	}
	if len(ours) == 0 {
		return nil
	}
	return append([]line{plain}, ours...)
}
