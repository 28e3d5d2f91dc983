package hedge_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/hedge"
)

// TestKeepArgs changes an argument after KeepArgs, and passes arguments that hold pointers, which KeepArgs refuses.
func TestKeepArgs(t *testing.T) {
	t.Parallel()
	ids := []int64{1, 2}
	kept, ok := hedge.KeepArgs([]any{1, "a", nil, time.Now(), [2]int{1, 2}, ids, []byte(nil)})
	ids[0] = 9
	if !ok || !slices.Equal(kept[5].([]int64), []int64{1, 2}) {
		t.Errorf("got %v, %t", kept, ok)
	}
	for _, arg := range []any{&ids, map[string]int{}, [][]int{{1}}, struct{ p *int }{}, func() {}} {
		if _, ok := hedge.KeepArgs([]any{arg}); ok {
			t.Errorf("%T was kept", arg)
		}
	}
}
