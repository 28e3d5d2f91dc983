package bench

import (
	"fmt"
	"math"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// figure returns a number with about three digits.
func figure(v float64) string {
	switch {
	case v == math.Trunc(v) || v >= 1000:
		return cli.Thousands(int(math.Round(v)))
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// plot draws a report into a directory, if there is one.
func plot(a *cli.App, dir string, report interface {
	Plot(dir string) ([]string, error)
},
) error {
	if dir == "" {
		return nil
	}
	made, err := report.Plot(dir)
	for _, path := range made {
		fmt.Fprintln(a.Stderr, "wrote", path)
	}
	return err
}
