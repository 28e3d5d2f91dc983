package ids

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// idSet collects IDs of 8 or 16 bytes, including duplicates.
type idSet struct {
	numbers []int64
	uuids   [][16]byte
}

// collect adds the IDs of the arrays in the rows' first column, and closes the rows.
func (s *idSet) collect(rows pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		raw := rows.RawValues()[0]
		s.numbers = slices.Grow(s.numbers, len(raw)/12) // at most: an element has its length and 8 bytes or more
		err := eachElement(raw, func(id []byte) {
			if len(id) == 16 {
				s.uuids = append(s.uuids, [16]byte(id))
			} else {
				s.numbers = append(s.numbers, int64(binary.BigEndian.Uint64(id)))
			}
		})
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *idSet) addNumbers(ids []shards.ID) {
	for _, id := range ids {
		s.numbers = append(s.numbers, int64(id))
	}
}

func (s *idSet) add(other idSet) {
	s.numbers = append(s.numbers, other.numbers...)
	s.uuids = append(s.uuids, other.uuids...)
}

func (s *idSet) len() int { return len(s.numbers) + len(s.uuids) }

// duplicates returns the number of repeated IDs. It sorts the set.
func (s *idSet) duplicates() int {
	slices.Sort(s.numbers)
	slices.SortFunc(s.uuids, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	return s.len() - len(slices.Compact(s.numbers)) - len(slices.Compact(s.uuids))
}
