package shards

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/shards/internal/pick"
)

// finder finds the shard of a key by a strategy. Its methods allocate nothing unless they return an error.
type finder struct {
	picker  pick.Picker // nil for a directory: its table, not the map, knows the shard of a key
	refuses int64       // the first number that RefuseIDs refuses; 0 without RefuseIDs
	by      string
	end     Key // after which keys have no shard until more shards are opened; zero for none
	ids     idPicker
}

// finder returns the finder of a valid strategy in a map of ids.count shards.
func (s Strategy) finder(ids idPicker) finder {
	f := finder{by: s.By, ids: ids}
	if s.RefuseIDs {
		f.refuses = ids.layout.smallestID()
	}
	of := s.divisor(ids.count)
	switch {
	case s.By == Directory:
	case s.By == ByID:
		f.picker = ids
	case s.By == ByRange && s.Ranges[0].From.kind == textKey:
		f.picker = pick.Texts(textRanges(s.Ranges))
	case s.By == ByRange:
		all := s.rangesOf(ids.count)
		f.picker = pick.Numbers(numberRanges(all))
		if s.Next > 0 {
			f.end = all[len(all)-1].To
		}
	case s.By == Modulo:
		f.picker = pick.Modulo(of)
	case s.Hash == MD5:
		f.picker = pick.MD5(of)
	case s.Hash == Hex:
		f.picker = pick.Hex(of, s.Digits)
	default:
		f.picker = pick.XXHash(of)
	}
	return f
}

// rangesOf returns the ranges in a map of count shards, with those that [Strategy.Next] adds.
func (s Strategy) rangesOf(count int) []KeyRange {
	if s.Next <= 0 || s.Ranges[0].From.kind != numberKey {
		return s.Ranges
	}
	all := slices.Clone(s.Ranges)
	for {
		last := &all[len(all)-1]
		if last.From.number > math.MaxInt64-s.Next {
			return all // it holds all numbers that are left
		}
		last.To = NumberKey(last.From.number + s.Next)
		if int(last.Shard)+1 >= count {
			return all
		}
		all = append(all, KeyRange{From: last.To, Shard: last.Shard + 1})
	}
}

func textRanges(all []KeyRange) []pick.Range[string] {
	return pickRanges(all, func(k Key) string { return k.text })
}

func numberRanges(all []KeyRange) []pick.Range[int64] {
	return pickRanges(all, func(k Key) int64 { return k.number })
}

func pickRanges[T int64 | string](all []KeyRange, value func(Key) T) []pick.Range[T] {
	ranges := make([]pick.Range[T], len(all))
	for i, r := range all {
		ranges[i] = pick.Range[T]{From: value(r.From), To: value(r.To), Open: r.To.IsZero(), Shard: int32(r.Shard)}
	}
	return ranges
}

func (f *finder) forKey(key Key) (Number, error) {
	switch key.kind {
	case numberKey:
		return f.forNumber(key.number)
	case textKey:
		return f.forText(key.text)
	}
	return 0, fmt.Errorf("no key: %w", ErrNoShard)
}

func (f *finder) forNumber(key int64) (Number, error) {
	if f.picker == nil {
		return 0, fmt.Errorf("key %d: %w", key, ErrInDirectory)
	}
	if f.refuses != 0 && key >= f.refuses {
		return 0, f.refuse(key)
	}
	n, err := f.picker.ForNumber(key)
	switch {
	case err == nil:
		return Number(n), nil
	case !f.end.IsZero() && key >= f.end.number:
		err = fmt.Errorf("key %d is after the range of the last shard, which ends at %d; kiloshard open adds shards", key, f.end.number)
	}
	return 0, noShard(err)
}

func (f *finder) forText(key string) (Number, error) {
	if f.picker == nil {
		return 0, fmt.Errorf("key %q: %w", key, ErrInDirectory)
	}
	if f.refuses != 0 {
		if number, ok := pick.ParseNumber(key); ok && number >= f.refuses {
			return 0, f.refuse(number)
		}
	}
	if number, ok := pick.ParseNumber(key); ok && !f.end.IsZero() {
		return f.forNumber(number)
	}
	n, err := f.picker.ForText(key)
	if err != nil {
		return 0, noShard(err)
	}
	return Number(n), nil
}

// explain returns the arithmetic for a key, empty if the key has no shard.
func (f *finder) explain(key Key) string {
	if _, err := f.forKey(key); err != nil {
		return ""
	}
	return f.picker.Explain(key.String())
}

// refuse returns the error of a number that is as large as an ID.
func (f *finder) refuse(key int64) error {
	why := "it is as large as an ID"
	if _, err := f.ids.ForNumber(key); err == nil {
		why = f.ids.explain(key)
		if n, err := f.picker.ForNumber(key); err == nil {
			why += fmt.Sprintf(", while %s looks for key %d in shard %d", f.by, key, n)
		}
	}
	return fmt.Errorf("key %d: %s: expected a key below %d, since strategy.refuse_ids is true; ForID, or kiloshard route --id, finds the shard of an ID: %w",
		key, why, f.refuses, ErrIsID)
}

// idPicker is the [pick.Picker] of IDs: each names the shard that made it.
type idPicker struct {
	layout Layout
	epoch  time.Time
	count  int // of shards
	old    ID  // smaller ones are of old tables
}

func (p idPicker) ForNumber(key int64) (int32, error) {
	if 0 <= key && ID(key) < p.old {
		return 0, fmt.Errorf("ID %d is from the time before the shards, whose IDs begin at %d: expected its key instead, by ForKey or kiloshard route", key, p.old)
	}
	n, err := p.layout.shardOf(ID(key), p.count)
	return int32(n), err
}

func (p idPicker) ForText(key string) (int32, error) {
	number, ok := pick.ParseNumber(key)
	if !ok {
		return 0, fmt.Errorf("key %q is not an ID: IDs are 64-bit integers", key)
	}
	return p.ForNumber(number)
}

func (p idPicker) Explain(key string) string {
	number, _ := pick.ParseNumber(key)
	return p.explain(number)
}

func (p idPicker) explain(id int64) string {
	text := fmt.Sprintf("ID %d was made by shard %d", id, p.layout.Parts(ID(id)).Shard)
	if p.layout.HasTime() {
		text += " at " + p.layout.TimeOf(ID(id), p.epoch).Format("2006-01-02T15:04:05.000Z")
	}
	return text
}
