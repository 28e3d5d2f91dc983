package stats_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/bench/stats"
)

func TestMedianRatio(t *testing.T) {
	t.Parallel()
	if got := stats.MedianRatio([]float64{2, 9, 12}, []float64{1, 3, 3}); got != 3 {
		t.Errorf("the median of 2, 3 and 4 is %g", got)
	}
	if got := stats.MedianRatio([]float64{1, 4}, []float64{1, 2}); got != 1.5 {
		t.Errorf("the median of 1 and 2 is %g", got)
	}
	if got := stats.Median(nil); got != 0 {
		t.Errorf("the median of nothing is %g", got)
	}
}
