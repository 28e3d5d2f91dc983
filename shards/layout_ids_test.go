package shards_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

// The example of the article in which Instagram published the layout.
func TestInstagramsExample(t *testing.T) {
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

// The pin of the article in which Pinterest published its layout.
func TestPinterestsExample(t *testing.T) {
	t.Parallel()
	const id = 241294492511762325
	l := shards.Layout{Shard: 16, Type: 10, Sequence: 36}
	want := shards.Parts{Shard: 3429, Type: 1, Sequence: 7075733}
	if got := l.Parts(id); got != want {
		t.Errorf("got %+v, expected %+v", got, want)
	}
	if back, err := l.Compose(want); err != nil || back != id {
		t.Errorf("got %d, %v, expected %d", back, err, id)
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

// layouts draws layouts that pass Validate.
func layouts() *rapid.Generator[shards.Layout] {
	return rapid.Custom(func(t *rapid.T) shards.Layout {
		l := shards.Layout{Shard: rapid.IntRange(1, 16).Draw(t, "shard bits"), Type: rapid.IntRange(0, 16).Draw(t, "type bits")}
		if rapid.Bool().Draw(t, "time") {
			l.Sequence = rapid.IntRange(1, 22).Draw(t, "sequence bits")
			l.Time = rapid.IntRange(1, min(47, 64-l.Shard-l.Type-l.Sequence)).Draw(t, "time bits")
		} else {
			l.Sequence = rapid.IntRange(2, min(48, 63-l.Shard-l.Type)).Draw(t, "sequence bits")
		}
		return l
	})
}

// parts draws parts that fit in a layout.
func parts(l shards.Layout) *rapid.Generator[shards.Parts] {
	return rapid.Custom(func(t *rapid.T) shards.Parts {
		return shards.Parts{
			Milliseconds: rapid.Int64Range(0, l.MaxMilliseconds()).Draw(t, "milliseconds"),
			Shard:        shards.Number(rapid.IntRange(0, l.MaxShards()-1).Draw(t, "shard")),
			Type:         rapid.IntRange(0, l.MaxTypes()-1).Draw(t, "type"),
			Sequence:     rapid.Int64Range(0, l.MaxSequence()).Draw(t, "sequence"),
		}
	})
}

func TestLayoutRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		want := parts(l).Draw(t, "parts")
		id, err := l.Compose(want)
		if err != nil || id < 0 {
			t.Fatalf("%+v became %d, %v", want, id, err)
		}
		if back := l.Parts(id); back != want {
			t.Fatalf("%+v became %d became %+v", want, id, back)
		}
	})
}

// Every field that is one too high or low is refused by its name.
func TestLayoutComposeRefuses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		wrong := parts(l).Draw(t, "parts")
		low := rapid.Bool().Draw(t, "low")
		field := rapid.SampledFrom([]string{"milliseconds", "shard", "type", "sequence"}).Draw(t, "field")
		pick := func(above int64) int64 {
			if low {
				return -1
			}
			return above
		}
		switch field {
		case "milliseconds":
			wrong.Milliseconds = pick(l.MaxMilliseconds() + 1)
		case "shard":
			wrong.Shard = shards.Number(pick(int64(l.MaxShards())))
		case "type":
			wrong.Type = int(pick(int64(l.MaxTypes())))
		case "sequence":
			wrong.Sequence = pick(l.MaxSequence() + 1)
		}
		_, err := l.Compose(wrong)
		var e *shards.FieldError
		if !errors.As(err, &e) || e.Field != field {
			t.Fatalf("%+v: got %v, expected an error for %s", wrong, err, field)
		}
	})
}
