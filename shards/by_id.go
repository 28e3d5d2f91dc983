package shards

import (
	"errors"
	"fmt"
	"time"
)

// ErrIsID says that a key is an ID, which the strategy does not accept: see [Strategy.RefuseIDs].
var ErrIsID = errors.New("an ID is not a key of this strategy")

// byID is the strategy of keys that are IDs: each names the shard that made it.
type byID struct {
	layout Layout
	epoch  time.Time
	shards int
}

func (s byID) forKey(key int64) (Number, error) { return s.layout.shardOf(ID(key), s.shards) }

func (s byID) forText(key string) (Number, error) {
	number, ok := parseNumber(key)
	if !ok {
		return 0, noShardFor(TextKey(key), "is not an ID: IDs are 64-bit integers")
	}
	return s.forKey(number)
}

func (s byID) explain(key Key) string {
	number := key.number
	if key.kind == textKey {
		number, _ = parseNumber(key.text)
	}
	text := fmt.Sprintf("ID %d was made by shard %d", number, s.layout.Parts(ID(number)).Shard)
	if s.layout.HasTime() {
		text += " at " + s.layout.TimeOf(ID(number), s.epoch).Format(timeOfID)
	}
	return text
}

// timeOfID writes the time of an ID, which is in whole milliseconds.
const timeOfID = "2006-01-02T15:04:05.000Z"

// shardOf returns the shard that an ID names, [ErrNoShard] for an ID that none of count shards can have made.
func (l Layout) shardOf(id ID, count int) (Number, error) {
	parts := l.Parts(id)
	switch {
	case id < 0:
		return 0, fmt.Errorf("ID %d is negative: %w", id, ErrNoShard)
	case parts.Milliseconds > l.MaxMilliseconds():
		return 0, fmt.Errorf("ID %d is above what layout %s holds: %w", id, l, ErrNoShard)
	case int(parts.Shard) >= count:
		return 0, fmt.Errorf("ID %d names shard %d, the map has shards 0 to %d: %w", id, parts.Shard, count-1, ErrNoShard)
	}
	return parts.Shard, nil
}

// smallestID returns the smallest number that counts as an ID rather than a key: the first ID of the second hour
// after the epoch. Without a time it is the smallest ID of shard 1, since those of shard 0 are small numbers.
func (l Layout) smallestID() int64 {
	if !l.HasTime() {
		return 1 << (l.Type + l.Sequence)
	}
	return time.Hour.Milliseconds() << l.low()
}

// notIDs is a strategy that refuses IDs.
type notIDs struct {
	picker
	by  string
	ids byID
}

func (s notIDs) forKey(key int64) (Number, error) {
	if key >= s.ids.layout.smallestID() {
		return 0, s.refuse(key)
	}
	return s.picker.forKey(key)
}

func (s notIDs) forText(key string) (Number, error) {
	if number, ok := parseNumber(key); ok && number >= s.ids.layout.smallestID() {
		return 0, s.refuse(number)
	}
	return s.picker.forText(key)
}

func (s notIDs) refuse(key int64) error {
	where := "it is as large as an ID"
	if _, err := s.ids.forKey(key); err == nil {
		where = s.ids.explain(NumberKey(key))
		if n, err := s.picker.forKey(key); err == nil {
			where += fmt.Sprintf(", while %s looks for key %d in shard %d", s.by, key, n)
		}
	}
	return fmt.Errorf("key %d: %s: expected a key below %d, since strategy.refuse_ids is true; ForID, or kiloshard route --id, finds the shard of an ID: %w",
		key, where, s.ids.layout.smallestID(), ErrIsID)
}

// NoteID returns a sentence, for people, about a key that may be an ID by mistake: an ID that a shard of the map could have
// made between an hour after the epoch and now, while the strategy maps it to another shard. It is empty for other
// keys, for IDs without a time, and with [ByID]. A number that is not an ID may look like one.
func (m *Map) NoteID(key Key, now time.Time) string {
	number := key.number
	if key.kind == textKey {
		var ok bool
		if number, ok = parseNumber(key.text); !ok {
			return ""
		}
	}
	c := m.config
	ids := byID{c.Layout, c.Epoch, c.Shards}
	made, err := ids.forKey(number)
	if err != nil || key.IsZero() || !c.Layout.HasTime() || number < c.Layout.smallestID() || m.Time(ID(number)).After(now.Add(time.Minute)) {
		return ""
	}
	n, err := m.For(key)
	if errors.Is(err, ErrInDirectory) {
		n, err = m.Otherwise(key)
	}
	if err != nil || n == made {
		return ""
	}
	return fmt.Sprintf("%s could be an ID: %s; its row would be there. ForID, or kiloshard route --id, finds the shard of an ID; "+
		"refuse_ids: true in the strategy refuses IDs as keys, and {by: id} accepts them", key, ids.explain(NumberKey(number)))
}
