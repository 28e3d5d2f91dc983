package shards_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

func TestLayoutEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		layout shards.Layout
		epoch  time.Time
		end    time.Time
	}{
		{
			"Instagram's: 34.8 years", shards.DefaultLayout,
			time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2045, 11, 3, 19, 53, 47, 776_000_000, time.UTC),
		}, {
			"41 bits that are all there: 69.7 years",
			shards.Layout{Time: 41, Shard: 12, Sequence: 10},
			time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2095, 9, 7, 15, 47, 35, 552_000_000, time.UTC),
		}, {
			"an epoch before 1970",
			shards.Layout{Time: 10, Shard: 13, Sequence: 10},
			time.Date(1969, 12, 31, 23, 59, 59, 500_000_000, time.UTC), time.Date(1970, 1, 1, 0, 0, 0, 524_000_000, time.UTC),
		}, {
			"the zero epoch",
			shards.Layout{Time: 10, Shard: 13, Sequence: 10},
			time.Time{},
			time.Time{}.Add(1024 * time.Millisecond),
		}, {
			"another zone",
			shards.Layout{Time: 1, Shard: 1, Sequence: 1},
			time.Date(2026, 1, 1, 2, 0, 0, 0, time.FixedZone("", 7200)), time.Date(2026, 1, 1, 0, 0, 0, 2_000_000, time.UTC),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			end := test.layout.End(test.epoch)
			if !end.Equal(test.end) || end.Location() != time.UTC {
				t.Fatalf("got %v, expected %v", end, test.end)
			}
			last, err := test.layout.Milliseconds(end.Add(-1), test.epoch)
			if err != nil || last != test.layout.MaxMilliseconds() {
				t.Errorf("a nanosecond before the end: got %d, %v, expected %d", last, err, test.layout.MaxMilliseconds())
			}
			if _, err := test.layout.Milliseconds(end, test.epoch); !errors.Is(err, shards.ErrAfterEnd) {
				t.Errorf("at the end: got %v, expected ErrAfterEnd", err)
			}
			if first, err := test.layout.Milliseconds(test.epoch, test.epoch); err != nil || first != 0 {
				t.Errorf("at the epoch: got %d, %v, expected 0", first, err)
			}
			if _, err := test.layout.Milliseconds(test.epoch.Add(-1), test.epoch); !errors.Is(err, shards.ErrBeforeEpoch) {
				t.Errorf("a nanosecond before the epoch: got %v, expected ErrBeforeEpoch", err)
			}
		})
	}
}

func TestLayoutOfNegativeID(t *testing.T) {
	t.Parallel()
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got := shards.DefaultLayout.Parts(-1)
	if want := (shards.Parts{Milliseconds: -1, Shard: 8191, Sequence: 1023}); got != want {
		t.Errorf("got %+v, expected %+v", got, want)
	}
	if made := shards.DefaultLayout.TimeOf(-1, epoch); !made.Equal(epoch.Add(-time.Millisecond)) {
		t.Errorf("made at %v, expected a millisecond before the epoch", made)
	}
}

func TestNoTime(t *testing.T) {
	t.Parallel()
	l := shards.Layout{Shard: 16, Type: 10, Sequence: 36}
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if made, end := l.TimeOf(241294492511762325, epoch), l.End(epoch); !made.IsZero() || !end.IsZero() {
		t.Errorf("got %v and the end %v, expected zero times", made, end)
	}
	if _, err := l.Milliseconds(epoch, epoch); !errors.Is(err, shards.ErrNoTime) {
		t.Errorf("got %v, expected ErrNoTime", err)
	}
}

func TestLayoutTimeRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Filter(shards.Layout.HasTime).Draw(t, "layout")
		epoch := time.UnixMilli(rapid.Int64Range(0, 4_000_000_000_000).Draw(t, "epoch")).UTC()
		parts := shards.Parts{Milliseconds: rapid.Int64Range(0, l.MaxMilliseconds()).Draw(t, "milliseconds")}
		id, err := l.Compose(parts)
		if err != nil {
			t.Fatal(err)
		}
		made := l.TimeOf(id, epoch)
		within := time.Duration(rapid.Int64Range(0, 999_999).Draw(t, "nanoseconds within the millisecond"))
		ms, err := l.Milliseconds(made.Add(within), epoch)
		if err != nil || ms != parts.Milliseconds {
			t.Fatalf("%v and %v with epoch %v: got %d ms, %v, expected %d", made, within, epoch, ms, err, parts.Milliseconds)
		}
	})
}
