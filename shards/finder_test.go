package shards_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

var byID = shards.Strategy{By: shards.ByID}

// idOf returns the ID that a shard made so long after the epoch.
func idOf(t testing.TB, m *shards.Map, n shards.Number, after time.Duration) shards.ID {
	t.Helper()
	parts := shards.Parts{Shard: n, Sequence: 7}
	if m.Layout().HasTime() {
		parts.Milliseconds = after.Milliseconds()
	}
	id, err := m.Layout().Compose(parts)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A key is an ID, as a number and as a text, and has the shard that the ID has.
func TestByID(t *testing.T) {
	t.Parallel()
	m := mapOf(t, 300, byID)
	rapid.Check(t, func(t *rapid.T) {
		id := shards.ID(rapid.Int64().Draw(t, "id"))
		want, errID := m.ForID(id)
		for _, key := range []shards.Key{shards.NumberKey(int64(id)), shards.TextKey(strconv.FormatInt(int64(id), 10))} {
			if n, err := m.For(key); n != want || (err == nil) != (errID == nil) || err != nil && !errors.Is(err, shards.ErrNoShard) {
				t.Fatalf("key %s: shard %d, %v; the ID has shard %d, %v", key, n, err, want, errID)
			}
		}
	})
	id := idOf(t, m, 42, 24*time.Hour)
	if got, want := m.Explain(shards.NumberKey(int64(id))), " was made by shard 42 at "+epoch.AddDate(0, 0, 1).Format(time.DateOnly); !strings.Contains(got, want) {
		t.Errorf("explained as %q, expected %q in it", got, want)
	}
	if _, err := m.ForText("alice"); !errors.Is(err, shards.ErrNoShard) || !strings.Contains(err.Error(), "is not an ID") {
		t.Errorf("a text: %v", err)
	}
}

// With RefuseIDs no ID of any shard is a key, and all smaller numbers are.
func TestRefuseIDs(t *testing.T) {
	t.Parallel()
	numbers := shards.Strategy{By: shards.ByRange, RefuseIDs: true, Ranges: []shards.KeyRange{{From: shards.NumberKey(-1 << 63)}}}
	for _, layout := range []shards.Layout{shards.DefaultLayout, {Time: 42, Shard: 10, Sequence: 11}, {Shard: 16, Type: 10, Sequence: 36}} {
		for _, s := range []shards.Strategy{{RefuseIDs: true}, {By: shards.Hash, RefuseIDs: true}, numbers} {
			c := newConfig(16)
			c.Layout, c.Strategy = layout, s
			m, err := c.Map()
			if err != nil {
				t.Fatal(err)
			}
			for n := range shards.Number(16) {
				if n == 0 && !layout.HasTime() {
					continue // its IDs are small numbers
				}
				key := int64(idOf(t, m, n, time.Hour))
				if _, err := m.ForKey(key); !errors.Is(err, shards.ErrIsID) || !strings.Contains(err.Error(), "was made by shard "+strconv.Itoa(int(n))) {
					t.Errorf("%s: an ID of shard %d: %v", s, n, err)
				}
				if _, err := m.ForText(strconv.FormatInt(key, 10)); !errors.Is(err, shards.ErrIsID) {
					t.Errorf("%s: the text of an ID of shard %d: %v", s, n, err)
				}
			}
			for _, key := range []int64{-1 << 63, -1, 0, 31341, 1 << 31} {
				if _, err := m.ForKey(key); err != nil {
					t.Errorf("%s: key %d: %v", s, key, err)
				}
			}
			if _, err := m.ForKey(1<<63 - 1); !errors.Is(err, shards.ErrIsID) {
				t.Errorf("%s: a number larger than any ID: %v", s, err)
			}
		}
	}
}

// NoteID notes a key that may be an ID if the strategy maps it to another shard.
func TestNoteID(t *testing.T) {
	t.Parallel()
	now := epoch.AddDate(0, 0, 2)
	otherwise := shards.Strategy{By: shards.Modulo, Of: 16}
	for _, test := range []struct {
		name     string
		strategy shards.Strategy
		after    time.Duration
		noted    bool
	}{
		{"an ID", shards.Strategy{}, 24 * time.Hour, true},
		{"an ID, by a hash", byXXHash, 24 * time.Hour, true},
		{"an ID without an entry", shards.Strategy{By: shards.Directory, Otherwise: &otherwise}, 24 * time.Hour, true},
		{"an ID where keys are IDs", byID, 24 * time.Hour, false},
		{"of tomorrow", shards.Strategy{}, 72 * time.Hour, false},
		{"a small number", shards.Strategy{}, time.Second, false},
	} {
		m := mapOf(t, 300, test.strategy)
		key := shards.NumberKey(int64(idOf(t, m, 42, test.after)))
		note := m.NoteID(key, now)
		if noted := strings.Contains(note, "was made by shard 42"); noted != test.noted || (note == "") == noted {
			t.Errorf("%s: got %q", test.name, note)
		}
	}
	if note := mapOf(t, 300, shards.Strategy{}).NoteID(shards.TextKey("alice"), now); note != "" {
		t.Errorf("a text: got %q", note)
	}
}
