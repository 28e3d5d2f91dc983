package bench

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/bench/adopt"
	"github.com/kiloshard/kiloshard/bench/moves"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/pages"
)

// bench/README.md quotes benchmarks that take too long for a test. They print these lines of a report.
func TestQuotes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../bench/README.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		command string
		print   func(*cli.App)
	}{
		{"kiloshard-lab bench move", func(a *cli.App) {
			values := []float64{1, 2}
			report := &moves.Report{Rows: 1_000_000, Callers: 4, Hold: 25, Rate: 10e6, Drain: &moves.Drained{}}
			for _, part := range slices.DeleteFunc(moves.Parts(), func(name string) bool { return name == "drain" }) {
				report.Parts = append(report.Parts, moves.Figure{Part: part, Moves: 10, Stalls: values, Fences: values, Seconds: values, Bare: values, Ratios: values})
			}
			printMoves(a, report)
		}},
		{"kiloshard-lab bench adopt --end back", func(a *cli.App) {
			const which = "insert photos, new"
			printAdoption(a, &adopt.Report{Steps: []adopt.Step{{Name: "adopt back, to views", Ratio: 1, Which: which}, {Name: "views again", Which: which}}})
		}},
	}
	for _, test := range tests {
		t.Run(test.command, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			a := cli.New(strings.NewReader(""), &out, io.Discard, os.LookupEnv)
			a.Output = cli.Table
			test.print(a)
			if err := pages.Missing(page, test.command, out.String()); err != nil {
				t.Errorf("%v\nit prints\n%s", err, &out)
			}
		})
	}
}
