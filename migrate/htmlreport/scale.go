package htmlreport

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// bandCount is the number of colours for durations.
const bandCount = 6

// scale divides the durations of a run into bands on a logarithmic scale, so that a few slow shards do not make all others
// look alike.
type scale struct {
	edges []time.Duration // upper ends of the bands; the last one is the longest duration
}

// band is one colour of the legend.
type band struct {
	Class string
	Label string
}

func newScale(took []time.Duration) scale {
	if len(took) == 0 {
		return scale{}
	}
	shortest, longest := max(slices.Min(took), time.Microsecond), max(slices.Max(took), time.Microsecond)
	if longest == shortest {
		return scale{edges: []time.Duration{longest}}
	}
	edges := make([]time.Duration, bandCount)
	ratio := float64(longest) / float64(shortest)
	for i := range edges {
		edges[i] = time.Duration(float64(shortest) * math.Pow(ratio, float64(i+1)/bandCount))
	}
	edges[bandCount-1] = longest
	return scale{edges: edges}
}

// class is the CSS class of squares of shards with this duration.
func (s scale) class(took time.Duration) string {
	for i, edge := range s.edges {
		if took <= edge {
			return fmt.Sprintf("d%d", i)
		}
	}
	return fmt.Sprintf("d%d", max(0, len(s.edges)-1))
}

func (s scale) bands() []band {
	bands := make([]band, len(s.edges))
	for i, edge := range s.edges {
		bands[i] = band{Class: fmt.Sprintf("d%d", i), Label: "≤ " + rounded(edge)}
	}
	return bands
}
