package shards_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

func TestLayoutValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		layout shards.Layout
		field  string // of the error; empty for none
	}{
		{"default", shards.DefaultLayout, ""},
		{"all that is allowed, 64 bits", shards.Layout{Time: 26, Shard: 16, Sequence: 22}, ""},
		{"least", shards.Layout{Time: 1, Shard: 1, Sequence: 1}, ""},
		{"widest time", shards.Layout{Time: 47, Shard: 1, Sequence: 1}, ""},
		{"zero", shards.Layout{}, "layout.time"},
		{"no time", shards.Layout{Time: 0, Shard: 13, Sequence: 10}, "layout.time"},
		{"too much time", shards.Layout{Time: 48, Shard: 1, Sequence: 1}, "layout.time"},
		{"no shard", shards.Layout{Time: 41, Shard: 0, Sequence: 10}, "layout.shard"},
		{"six digits of shards", shards.Layout{Time: 30, Shard: 17, Sequence: 10}, "layout.shard"},
		{"no sequence", shards.Layout{Time: 41, Shard: 13, Sequence: 0}, "layout.sequence"},
		{"too much sequence", shards.Layout{Time: 20, Shard: 13, Sequence: 23}, "layout.sequence"},
		{"negative", shards.Layout{Time: 41, Shard: -1, Sequence: 10}, "layout.shard"},
		{"65 bits", shards.Layout{Time: 41, Shard: 14, Sequence: 10}, "layout"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := test.layout.Validate()
			var e *shards.FieldError
			switch {
			case test.field == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case test.field != "" && !errors.As(err, &e):
				t.Fatalf("got %v, expected a FieldError", err)
			case test.field != "" && e.Field != test.field:
				t.Fatalf("got the field %q, expected %q", e.Field, test.field)
			}
		})
	}
}

func TestLayoutLimits(t *testing.T) {
	t.Parallel()
	l := shards.DefaultLayout
	if got := l.TimeBits(); got != 40 {
		t.Errorf("TimeBits: got %d, expected 40, since the sign bit is no time", got)
	}
	if got := l.MaxShards(); got != 8192 {
		t.Errorf("MaxShards: got %d", got)
	}
	if got := l.Slots(); got != 1024 {
		t.Errorf("Slots: got %d", got)
	}
	if got := l.MaxMilliseconds(); got != 1<<40-1 {
		t.Errorf("MaxMilliseconds: got %d", got)
	}
	if got := l.MaxSequenceValue(); got != 1<<50-1 {
		t.Errorf("MaxSequenceValue: got %d", got)
	}
	if got := (shards.Layout{Time: 36, Shard: 10, Sequence: 10}).TimeBits(); got != 36 {
		t.Errorf("TimeBits with bits to spare: got %d, expected 36", got)
	}
}

// The example of the article in which Instagram published the layout.
func TestLayoutInstagram(t *testing.T) {
	t.Parallel()
	parts := shards.Parts{Milliseconds: 1387263000, Shard: 31341 % 2000, Sequence: 5001 % 1024}
	id, err := shards.DefaultLayout.Compose(parts)
	if err != nil {
		t.Fatal(err)
	}
	const want = 11637205501278089
	if id != want {
		t.Errorf("got %d, expected %d", id, want)
	}
	if parts.Shard != 1341 || parts.Sequence != 905 {
		t.Errorf("got shard %d and sequence %d, expected 1341 and 905", parts.Shard, parts.Sequence)
	}
	made := shards.DefaultLayout.TimeOf(id, time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC))
	if expected := time.Date(2011, 1, 17, 1, 21, 3, 0, time.UTC); !made.Equal(expected) {
		t.Errorf("made at %v, expected %v", made, expected)
	}
}

func TestLayoutCompose(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		parts shards.Parts
		field string // of the error; empty for none
		id    shards.ID
	}{
		{"zero", shards.Parts{}, "", 0},
		{"highest", shards.Parts{Milliseconds: 1<<40 - 1, Shard: 8191, Sequence: 1023}, "", 1<<63 - 1},
		{"time too high", shards.Parts{Milliseconds: 1 << 40}, "milliseconds", 0},
		{"time negative", shards.Parts{Milliseconds: -1}, "milliseconds", 0},
		{"shard too high", shards.Parts{Shard: 8192}, "shard", 0},
		{"shard negative", shards.Parts{Shard: -1}, "shard", 0},
		{"sequence too high", shards.Parts{Sequence: 1024}, "sequence", 0},
		{"sequence negative", shards.Parts{Sequence: -1}, "sequence", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			id, err := shards.DefaultLayout.Compose(test.parts)
			field := ""
			if e := (*shards.FieldError)(nil); errors.As(err, &e) {
				field = e.Field
			}
			if id != test.id || field != test.field {
				t.Fatalf("got %d, %v, expected %d and an error for %q", id, err, test.id, test.field)
			}
		})
	}
}

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
	parts := shards.DefaultLayout.Parts(-1)
	if want := (shards.Parts{Milliseconds: -1, Shard: 8191, Sequence: 1023}); parts != want {
		t.Errorf("got %+v, expected %+v", parts, want)
	}
	if made := shards.DefaultLayout.TimeOf(-1, epoch); !made.Equal(epoch.Add(-time.Millisecond)) {
		t.Errorf("made at %v, expected a millisecond before the epoch", made)
	}
}

// layouts draws layouts that pass Validate.
func layouts() *rapid.Generator[shards.Layout] {
	return rapid.Custom(func(t *rapid.T) shards.Layout {
		shard := rapid.IntRange(1, 16).Draw(t, "shard bits")
		sequence := rapid.IntRange(1, 22).Draw(t, "sequence bits")
		return shards.Layout{Time: rapid.IntRange(1, min(47, 64-shard-sequence)).Draw(t, "time bits"), Shard: shard, Sequence: sequence}
	})
}

func TestLayoutRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		parts := shards.Parts{
			Milliseconds: rapid.Int64Range(0, l.MaxMilliseconds()).Draw(t, "milliseconds"),
			Shard:        shards.Number(rapid.IntRange(0, l.MaxShards()-1).Draw(t, "shard")),
			Sequence:     rapid.IntRange(0, l.Slots()-1).Draw(t, "sequence"),
		}
		id, err := l.Compose(parts)
		if err != nil || id < 0 {
			t.Fatalf("%+v became %d, %v", parts, id, err)
		}
		if back := l.Parts(id); back != parts {
			t.Fatalf("%+v became %d became %+v", parts, id, back)
		}
	})
}

func TestLayoutTimeRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
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
