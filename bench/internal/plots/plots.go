// Package plots draws the results of benchmarks.
package plots

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

// palette is the palette of Okabe and Ito, which color-blind readers can tell apart.
var palette = []color.Color{
	color.RGBA{R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF},
	color.RGBA{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF},
	color.RGBA{R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF},
	color.RGBA{R: 0x00, G: 0x9E, B: 0x73, A: 0xFF},
	color.RGBA{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF},
	color.RGBA{R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF},
	color.RGBA{R: 0x60, G: 0x60, B: 0x60, A: 0xFF},
}

// Line is one line of a plot.
type Line struct {
	Name   string
	Points plotter.XYs
}

// Picture is a plot and the name of its file.
type Picture struct {
	File, Title, X, Y string
	Log               bool // over a logarithmic x
	Lines             []Line
}

// Save writes pictures into a directory, except those with a single point in each line.
func Save(dir string, pictures []Picture) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var made []string
	for _, p := range pictures {
		if len(p.Lines) == 0 || len(p.Lines[0].Points) < 2 {
			continue
		}
		drawn, err := draw(p.Title, p.X, p.Y, p.Log, p.Lines)
		if err != nil {
			return made, err
		}
		for _, ending := range []string{".svg", ".png"} {
			path := filepath.Join(dir, p.File+ending)
			if err := drawn.Save(20*vg.Centimeter, 12*vg.Centimeter, path); err != nil {
				return made, fmt.Errorf("%s: %w", path, err)
			}
			made = append(made, path)
		}
	}
	return made, nil
}

func draw(title, x, y string, log bool, lines []Line) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(2)
	p.Add(plotter.NewGrid())
	if log {
		p.X.Scale = plot.LogScale{}
		p.X.Tick.Marker = measuredTicks(lines[0].Points)
	}
	for i, l := range lines {
		drawn, points, err := plotter.NewLinePoints(l.Points)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		drawn.Color, points.Color = palette[i%len(palette)], palette[i%len(palette)]
		drawn.Width, points.Shape = vg.Points(1.5), glyph.CircleGlyph{}
		p.Add(drawn, points)
		p.Legend.Add(l.Name, drawn, points)
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
