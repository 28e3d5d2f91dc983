package shards_test

import (
	"errors"
	"testing"

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
		{"Pinterest's, without a time", shards.Layout{Shard: 16, Type: 10, Sequence: 36}, ""},
		{"without a time and a type", shards.Layout{Shard: 13, Sequence: 10}, ""},
		{"widest sequence, 63 bits without a time", shards.Layout{Shard: 14, Type: 1, Sequence: 48}, ""},
		{"with a type", shards.Layout{Time: 41, Shard: 10, Type: 4, Sequence: 8}, ""},
		{"zero", shards.Layout{}, "layout.shard"},
		{"negative time", shards.Layout{Time: -1, Shard: 13, Sequence: 10}, "layout.time"},
		{"too much type", shards.Layout{Time: 20, Shard: 13, Type: 17, Sequence: 10}, "layout.type"},
		{"negative type", shards.Layout{Time: 20, Shard: 13, Type: -1, Sequence: 10}, "layout.type"},
		{"a sequence of Postgres of one value", shards.Layout{Shard: 13, Sequence: 1}, "layout.sequence"},
		{"too much sequence without a time", shards.Layout{Shard: 10, Sequence: 49}, "layout.sequence"},
		{"64 bits without a time", shards.Layout{Shard: 16, Sequence: 48}, "layout"},
		{"65 bits with a type", shards.Layout{Time: 41, Shard: 13, Type: 1, Sequence: 10}, "layout"},
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

func TestLayoutLimitsWithoutATime(t *testing.T) {
	t.Parallel()
	l := shards.Layout{Shard: 16, Type: 10, Sequence: 36}
	if l.HasTime() || l.TimeBits() != 0 || l.MaxMilliseconds() != 0 || l.Slots() != 0 {
		t.Errorf("got %d bits of time, %d ms, %d slots, expected none", l.TimeBits(), l.MaxMilliseconds(), l.Slots())
	}
	if l.MaxShards() != 65536 || l.MaxTypes() != 1024 || l.MaxSequence() != 1<<36-1 || l.MaxSequenceValue() != 1<<36-1 {
		t.Errorf("got %d shards, %d types, sequence %d, value %d", l.MaxShards(), l.MaxTypes(), l.MaxSequence(), l.MaxSequenceValue())
	}
	if got := shards.DefaultLayout.MaxTypes(); got != 1 {
		t.Errorf("without bits of type: got %d types, expected 1", got)
	}
}

func TestLayoutString(t *testing.T) {
	t.Parallel()
	for layout, want := range map[shards.Layout]string{
		shards.DefaultLayout:                        "41|13|10",
		{Shard: 16, Type: 10, Sequence: 36}:         "16 shard|10 type|36 sequence",
		{Shard: 16, Sequence: 36}:                   "16 shard|36 sequence",
		{Time: 41, Shard: 10, Type: 4, Sequence: 8}: "41 time|10 shard|4 type|8 sequence",
	} {
		if got := layout.String(); got != want {
			t.Errorf("got %s, expected %s", got, want)
		}
	}
}
