package ids

import (
	"encoding/binary"
	"testing"
)

func TestDuplicates(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		ids  idSet
		want int
	}{
		{"none at all", idSet{}, 0},
		{"all different", idSet{numbers: []int64{3, 1, 2}}, 0},
		{"one twice", idSet{numbers: []int64{3, 1, 3}}, 1},
		{"one three times, one twice", idSet{numbers: []int64{7, 5, 7, 5, 7}}, 3},
		{"a UUID twice", idSet{uuids: [][16]byte{{1}, {2}, {1}}}, 1},
	}
	for _, test := range tests {
		if got := test.ids.duplicates(); got != test.want {
			t.Errorf("%s: %d duplicates, expected %d", test.name, got, test.want)
		}
	}
}

func TestEachElement(t *testing.T) {
	t.Parallel()
	// Dimensions, flags, type, length, lower bound, then each element's length and bytes.
	words := []uint32{1, 0, 20, 2, 1, 8, 0, 5, 8, 1, 6}
	raw := make([]byte, 0, 4*len(words))
	for _, w := range words {
		raw = binary.BigEndian.AppendUint32(raw, w)
	}
	var got []uint64
	err := eachElement(raw, func(element []byte) { got = append(got, binary.BigEndian.Uint64(element)) })
	if err != nil || len(got) != 2 || got[0] != 5 || got[1] != 1<<32+6 {
		t.Errorf("got %v, %v, expected 5 and 2^32+6", got, err)
	}
	for end := range len(raw) {
		if err := eachElement(raw[:end], func([]byte) {}); err == nil {
			t.Errorf("an array cut off after %d bytes was read", end)
		}
	}
}
