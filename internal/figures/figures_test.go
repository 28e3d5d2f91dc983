package figures_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/internal/figures"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := figures.Thousands(n); got != want {
			t.Errorf("%d: got %s", n, got)
		}
	}
	if got := figures.Megabytes(12_345_678); got != "12.3 MB" {
		t.Errorf("got %s", got)
	}
}
