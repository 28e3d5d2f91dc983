package bench

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	glyph "gonum.org/v1/plot/vg/draw"
)

// The files that the Plot methods of reports write, each as SVG and as PNG.
const (
	PlotIDs     = "ids-per-ms"             // IDs per millisecond over the number of sessions
	PlotInserts = "insert-rate"            // rows per second over the size of the table
	PlotRoute   = "route-calls-per-second" // of both sides, over the number of goroutines
)

// inPlot are the ways to make IDs that are plotted; all together would be unreadable.
var inPlot = []string{Published, Ours, Ours16, OursMany, UUIDv4, UUIDv7}

// palette is that of Okabe and Ito, which is safe for color-blind readers.
var palette = []color.Color{
	color.RGBA{R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF},
	color.RGBA{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF},
	color.RGBA{R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF},
	color.RGBA{R: 0x00, G: 0x9E, B: 0x73, A: 0xFF},
	color.RGBA{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF},
	color.RGBA{R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF},
	color.RGBA{R: 0x60, G: 0x60, B: 0x60, A: 0xFF},
}

// line is one line of a plot.
type line struct {
	name   string
	points plotter.XYs
}

// picture is a plot and the name of its file.
type picture struct {
	file, title, x, y string
	log               bool // over a logarithmic x
	lines             []line
}

// Plot writes the report's plots into a directory, and returns the paths of the files. It skips a plot with a single point
// in each line.
func (r *IDsReport) Plot(dir string) ([]string, error) {
	return save(dir, []picture{
		{PlotIDs, "IDs per millisecond (PostgreSQL " + r.Server + ")", "sessions", "IDs per ms", true, r.idLines()},
		{PlotInserts, "Inserts into a table by its key (PostgreSQL " + r.Server + ")", "million rows in the table", "thousand rows per second", false, r.insertLines()},
	})
}

// save writes pictures into a directory, except those with a single point in each line.
func save(dir string, pictures []picture) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var made []string
	for _, p := range pictures {
		if len(p.lines) == 0 || len(p.lines[0].points) < 2 {
			continue
		}
		drawn, err := draws(p.title, p.x, p.y, p.log, p.lines)
		if err != nil {
			return made, err
		}
		for _, ending := range []string{".svg", ".png"} {
			path := filepath.Join(dir, p.file+ending)
			if err := drawn.Save(20*vg.Centimeter, 12*vg.Centimeter, path); err != nil {
				return made, fmt.Errorf("%s: %w", path, err)
			}
			made = append(made, path)
		}
	}
	return made, nil
}

func (r *IDsReport) idLines() []line {
	var lines []line
	for _, name := range inPlot {
		l := line{name: name}
		for _, f := range r.Rows {
			if f.Function == name {
				l.points = append(l.points, plotter.XY{X: float64(f.Sessions), Y: f.PerMs})
			}
		}
		lines = append(lines, l)
	}
	return lines
}

func (r *IDsReport) insertLines() []line {
	var lines []line
	for _, f := range r.Inserts {
		l := line{name: f.Key}
		for _, g := range f.Growth {
			l.points = append(l.points, plotter.XY{X: float64(g.Rows) / 1e6, Y: g.PerSecond / 1e3})
		}
		lines = append(lines, l)
	}
	return lines
}

func draws(title, x, y string, log bool, lines []line) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(2)
	p.Add(plotter.NewGrid())
	if log {
		p.X.Scale = plot.LogScale{}
		p.X.Tick.Marker = measuredTicks(lines[0].points)
	}
	for i, l := range lines {
		drawn, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		drawn.Color, points.Color = palette[i%len(palette)], palette[i%len(palette)]
		drawn.Width, points.Shape = vg.Points(1.5), glyph.CircleGlyph{}
		p.Add(drawn, points)
		p.Legend.Add(l.name, drawn, points)
	}
	p.Y.Max *= 1.6 // room for the legend
	return p, nil
}

// measuredTicks puts ticks at the measured values.
func measuredTicks(points plotter.XYs) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, point := range points {
		ticks = append(ticks, plot.Tick{Value: point.X, Label: fmt.Sprint(int(point.X))})
	}
	return ticks
}
