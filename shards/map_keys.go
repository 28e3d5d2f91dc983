package shards

import (
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kiloshard/kiloshard/shards/internal/pick"
)

// ForKey returns the shard of a number by the map's strategy. It allocates nothing.
//
// With modulo it is the remainder of the number, 0 or more even if the number is negative; with hash it is the shard
// of the number's decimal text; with [ByID] it is [Map.ForID]. It returns [ErrNoShard] for a number in no range,
// [ErrInDirectory] for a directory, and [ErrIsID] for an ID that [Strategy.RefuseIDs] refuses.
func (m *Map) ForKey(key int64) (Number, error) { return m.finder.forNumber(key) }

// ForText returns the shard of a text by the map's strategy. It allocates only for texts of more than 256 bytes with
// md5 or hex. For the decimal text of a number it is the shard of the number.
//
// It returns [ErrNoShard] for a text in no range, and for a text that is not a number if the strategy needs numbers, as
// modulo, ranges of numbers and IDs do; [ErrInDirectory] and [ErrIsID] as ForKey does.
func (m *Map) ForText(key string) (Number, error) { return m.finder.forText(key) }

// For returns the result of [Map.ForKey] or [Map.ForText], and [ErrNoShard] for the zero Key.
func (m *Map) For(key Key) (Number, error) { return m.finder.forKey(key) }

// Explain returns the arithmetic by which a key picks its shard, such as "31341 mod 2048 = 1341", for people. It is
// empty if [Map.For] returns an error.
func (m *Map) Explain(key Key) string { return m.finder.explain(key) }

// ForBytes returns the shard of any bytes, with any strategy: the remainder of their xxHash (64 bits, seed 0) divided
// by the number of shards.
func (m *Map) ForBytes(key []byte) Number {
	return Number(xxhash.Sum64(key) % uint64(len(m.hosts)))
}

// ForUUID returns the shard of a UUID. A UUID holds no shard, so it is the [Map.ForBytes] of its 16 bytes.
func (m *Map) ForUUID(uuid [16]byte) Number { return m.ForBytes(uuid[:]) }

// MD5Shard returns the shard of any bytes among of shards, 1 or more: the remainder of their MD5 digest, its 16 bytes
// as one big-endian number, as for Pinterest's mod shards. The article prints 1524 for md5("1.2.3.4") % 4096, which
// is the result for the same text with a newline at its end; without the newline it is 1537.
func MD5Shard(key []byte, of int) Number {
	n, _ := pick.MD5(of).ForText(string(key))
	return Number(n)
}

// ForID returns the shard that made an ID. It returns [ErrNoShard] for an ID that no shard of the
// map could have made, such as one below [Config.OldIDsBelow].
func (m *Map) ForID(id ID) (Number, error) {
	n, err := m.ids.ForNumber(int64(id))
	if err != nil {
		return 0, noShard(err)
	}
	return Number(n), nil
}

// ForIDOf returns the shard of an ID that the named generator made. For interleaved IDs it is their remainder;
// other numbers hold no shard, and are keys like any other, with the errors of [Map.ForKey]. It returns [ErrNoShard]
// if the map has no such shard, and [ErrNoGenerator] if no generator has the name or it makes UUIDs: see [Map.ForUUID].
func (m *Map) ForIDOf(name string, id ID) (Number, error) {
	g, ok := m.Generator(name)
	switch {
	case !ok:
		return 0, fmt.Errorf("%q: %w", name, ErrNoGenerator)
	case g.Kind == UUIDv4 || g.Kind == UUIDv7:
		return 0, fmt.Errorf("%q makes UUIDs: %w of numbers", name, ErrNoGenerator)
	case g.Kind != Interleaved:
		return m.ForKey(int64(id))
	}
	if n := Number(int64(id) % int64(g.Of)); id > 0 && m.Has(n) {
		return n, nil
	}
	return 0, fmt.Errorf("ID %d of %q, interleaved of %d; the map has shards 0 to %d: %w", id, name, g.Of, m.Len()-1, ErrNoShard)
}

// HasDirectory reports whether the strategy is a directory.
func (m *Map) HasDirectory() bool { return m.config.Strategy.By == Directory }

// Allocates reports whether the strategy chooses the shards of new keys, as a directory and [ByID] do. Each shard then
// counts its keys in its table kiloshard_usage.
func (m *Map) Allocates() bool { return m.config.Strategy.allocates() }

// MakesKeys reports whether each ID is a key of the shard that made it: with [ByID], and with a directory in which
// keys without an entry are IDs.
func (m *Map) MakesKeys() bool {
	s := m.config.Strategy
	return s.By == ByID || s.By == Directory && s.Otherwise != nil && s.Otherwise.By == ByID
}

// EntryShard returns the shard whose table holds the directory's entry of a key: the remainder of the xxHash of its
// text divided by [Strategy.Of]. The result is meaningless without a directory.
func (m *Map) EntryShard(key Key) Number {
	n, _ := m.entries.forKey(key)
	return n
}

// Otherwise returns the shard of a key without an entry, or [ErrNoShard] if such a key has none.
func (m *Map) Otherwise(key Key) (Number, error) {
	if m.otherwise == nil {
		return 0, noShard(fmt.Errorf("key %s has no entry in the directory", key.written()))
	}
	return m.otherwise.forKey(key)
}

// ExplainOtherwise returns the arithmetic of [Map.Otherwise] as [Map.Explain] does, empty if that returns an error.
func (m *Map) ExplainOtherwise(key Key) string {
	if m.otherwise == nil {
		return ""
	}
	return m.otherwise.explain(key)
}

// NoteID returns a sentence, for people, about a key that may be an ID by mistake: an ID that a shard of the map
// could have made between an hour after the epoch and now, while the strategy maps it to another shard. It is empty
// for other keys, for IDs without a time, and with [ByID]. A number that is not an ID may look like one.
func (m *Map) NoteID(key Key, now time.Time) string {
	number := key.number
	if key.kind == textKey {
		var ok bool
		if number, ok = pick.ParseNumber(key.text); !ok {
			return ""
		}
	}
	made, err := m.ids.ForNumber(number)
	if err != nil || key.IsZero() || !m.Layout().HasTime() || number < m.Layout().smallestID() || m.Time(ID(number)).After(now.Add(time.Minute)) {
		return ""
	}
	n, err := m.For(key)
	if errors.Is(err, ErrInDirectory) {
		n, err = m.Otherwise(key)
	}
	if err != nil || n == Number(made) {
		return ""
	}
	return fmt.Sprintf("%s could be an ID: %s; its row would be there. ForID, or kiloshard route --id, finds the shard of an ID; "+
		"refuse_ids: true in the strategy refuses IDs as keys, and {by: id} accepts them", key, m.ids.explain(number))
}
