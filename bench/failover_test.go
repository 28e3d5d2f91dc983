package bench

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
)

// If one host fails, in full in each way, all calls to the other one succeed, and every acknowledged write exists once.
func TestFailover(t *testing.T) {
	t.Parallel()
	for i, part := range FailoverParts() {
		if i > 0 && !pgtest.Full() {
			break
		}
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			servers := localpg.Config{Settings: map[string]string{"fsync": "off"}}
			report, err := Failover(t.Context(), FailoverConfig{
				Servers: servers, Only: []string{part}, Turn: 700 * time.Millisecond, Callers: 8,
				FailAfter: 4 * time.Second, Down: 6 * time.Second, // the other host is not to be found silent because the machine is busy
			})
			if err != nil {
				t.Fatal(err)
			}
			f := report.Parts[0]
			t.Logf("%+v", f)
			switch {
			case f.OtherErrors != 0:
				t.Errorf("%d calls to the other host failed", f.OtherErrors)
			case f.Lost != 0 || f.Doubled != 0:
				t.Errorf("%d writes were lost, %d are there more than once", f.Lost, f.Doubled)
			case slices.ContainsFunc(slices.Collect(maps.Keys(f.Errors)), func(kind string) bool { return strings.HasPrefix(kind, otherKind) }):
				t.Errorf("errors: %v", f.Errors)
			case f.Acked == 0 || f.OtherCalls == 0:
				t.Error("the test proves nothing")
			}
		})
	}
}
