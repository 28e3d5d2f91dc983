package ids

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

func TestAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		made time.Time
		want string
	}{
		{now, "just now"},
		{now.Add(-999 * time.Millisecond), "just now"},
		{now.Add(-time.Second), "1 second ago"},
		{now.Add(-119 * time.Second), "119 seconds ago"},
		{now.Add(-2 * time.Minute), "2 minutes ago"},
		{now.Add(-47 * time.Hour), "47 hours ago"},
		{now.AddDate(-1, 0, 0), "365 days ago"},
		{now.AddDate(-10, 0, -1), "10 years ago"},
		{now.Add(5 * time.Second), "in 5 seconds"},
		{now.AddDate(127, 0, 1), "in 127 years"},
		{now.AddDate(4000, 0, 0), "in 292 years"}, // as far as a time.Duration goes
	}
	for _, test := range tests {
		if got := ago(test.made, now); got != test.want {
			t.Errorf("%s: got %q, expected %q", test.made, got, test.want)
		}
	}
}

// TestExplain holds the fields that are shown against those that the model knows.
func TestExplain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(published).Draw(t, "scheme")
		l := s.layout
		want := shards.Parts{
			Milliseconds: rapid.Int64Range(0, l.MaxMilliseconds()).Draw(t, "milliseconds"),
			Shard:        shards.Number(rapid.IntRange(0, l.MaxShards()-1).Draw(t, "shard")),
			Type:         rapid.IntRange(0, l.MaxTypes()-1).Draw(t, "type"),
			Sequence:     rapid.Int64Range(0, l.MaxSequence()).Draw(t, "sequence"),
		}
		id, err := l.Compose(want)
		if err != nil {
			t.Fatal(err)
		}
		e := s.explain(uint64(id))
		got := []int64{int64(want.Shard)}
		if l.Type > 0 {
			got = append(got, int64(want.Type))
		}
		got = append(got, want.Sequence)
		if len(e.values) != len(got) || !e.made.Equal(l.TimeOf(id, s.epoch)) {
			t.Fatalf("got %d fields made at %s, expected %d at %s", len(e.values), e.made, len(got), l.TimeOf(id, s.epoch))
		}
		for i, v := range e.values {
			if int64(v.number) != got[i] {
				t.Errorf("%s is %d, expected %d", v.name, v.number, got[i])
			}
		}
	})
}
