package metrics_test

import (
	"context"
	"testing"
)

type traceKey struct{}

// traceOf returns the trace that a test has put into a context.
func traceOf(ctx context.Context) string {
	id, _ := ctx.Value(traceKey{}).(string)
	return id
}

// TestExemplars holds that the histogram of times leads to the trace of a call that has one.
func TestExemplars(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 4, nil)
	exemplars := func() (ids []string) {
		families, err := b.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() != "kiloshard_router_operation_seconds" {
				continue
			}
			for _, series := range family.GetMetric() {
				for _, bucket := range series.GetHistogram().GetBucket() {
					for _, label := range bucket.GetExemplar().GetLabel() {
						ids = append(ids, label.GetName()+"="+label.GetValue())
					}
				}
			}
		}
		return ids
	}
	s := b.shard(t, 0)
	if _, err := s.Exec(ctx, `select 1`); err != nil {
		t.Fatal(err)
	}
	if got := exemplars(); len(got) != 0 {
		t.Errorf("without a trace: %q", got)
	}
	if _, err := s.Exec(context.WithValue(ctx, traceKey{}, "4bf92f35"), `select 1`); err != nil {
		t.Fatal(err)
	}
	if got := exemplars(); len(got) != 1 || got[0] != "trace_id=4bf92f35" {
		t.Errorf("got %q", got)
	}
}
