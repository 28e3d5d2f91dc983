package prove_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// unknownTo returns how many of the IDs received so far a database has not heard of: those beyond the last value of
// their shard's sequence. No call may be under way, and none may have been made there. The published function's
// sequence says nothing about time, so there the number is not known.
func (h *history) unknownTo(t *testing.T, s subject, dsn string, numbers ...shards.Number) int {
	t.Helper()
	if s != kiloshard {
		return 0
	}
	unknown := 0
	for _, number := range numbers {
		last := ask[int64](t, dsn, "select last_value from "+schema(number)+".next_id_seq")
		slots := int64(layout.Slots())
		id, err := layout.Compose(shards.Parts{Milliseconds: last / slots, Shard: number, Sequence: last % slots})
		if err != nil {
			t.Fatal(err)
		}
		unknown += h.beyond(number, id)
	}
	t.Logf("%d IDs had been received that the database did not know of", unknown)
	return unknown
}

// beyond returns how many IDs of a shard that were received lie beyond one.
func (h *history) beyond(number shards.Number, id shards.ID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := 0
	for _, s := range h.sessions {
		if s.shard != number {
			continue
		}
		for _, own := range s.ids {
			if own > id {
				count++
			}
		}
	}
	return count
}
