package routes

import "testing"

// Each observer, and the tracing library alone, is compared with no observer, and all have made calls.
func TestObservedPart(t *testing.T) {
	t.Parallel()
	b := routeOn(t)
	if err := measureObserved(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if want := 3 * 3 * (len(observers()) + 1); len(b.report.Rows) != want {
		t.Errorf("%d rows, want %d", len(b.report.Rows), want)
	}
	for _, row := range b.report.Rows {
		if row.Ours <= 0 || row.Plain == nil || *row.Plain <= 0 || row.Ratio == nil {
			t.Errorf("%+v", row)
		}
	}
}
