package primary_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/primary"
)

// TestDialWhileAHostGoesDown dials a host that goes down during the dial. The dial returns a connection or an error that
// says so, even if the host is up again.
func TestDialWhileAHostGoesDown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ upAgain, succeeds bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		conn, err := primary.DialWhileItGoesDown(t.Context(), failure.ErrHostDown, test.upAgain, test.succeeds)
		if conn != nil {
			_ = conn.Close()
		}
		switch wanted := test.upAgain && test.succeeds; {
		case wanted != (conn != nil) || wanted != (err == nil):
			t.Errorf("%+v: got %v, %v", test, conn, err)
		case !test.upAgain && !errors.Is(err, failure.ErrHostDown), errors.Is(err, context.Canceled):
			t.Errorf("%+v: got %v", test, err)
		}
	}
}
