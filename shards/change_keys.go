package shards

import (
	"fmt"
	"strconv"

	"github.com/kiloshard/kiloshard/shards/internal/pick"
)

// CheckKeys reports whether keys that have a shard by the strategy from keep it by the strategy to; both are texts as
// in [Identity.Keys]. The error is a [ChangeError], or a [FieldError] for a text that cannot be read.
func CheckKeys(from, to string) error {
	if from == to {
		return nil
	}
	a, err := parseKeys(from)
	if err != nil {
		return err
	}
	b, err := parseKeys(to)
	if err != nil {
		return err
	}
	return checkStrategyChange("strategy", a, b, a.Of, b.Of)
}

// FewerRanges reports whether the strategies from and to are ranges, and keys that have a shard by to have the same
// by from.
func FewerRanges(from, to string) bool {
	a, errA := parseKeys(from)
	b, errB := parseKeys(to)
	return errA == nil && errB == nil && a.By == ByRange && b.By == ByRange && checkRangesChange("", b.allRanges(), a.allRanges()) == nil
}

// parseKeys reads a strategy as [Strategy.String] writes it.
func parseKeys(text string) (Strategy, error) {
	var document struct {
		Strategy Strategy `yaml:"strategy"`
	}
	lines, err := format.Decode([]byte("strategy: "+text), &document)
	s := document.Strategy.withDefaults()
	if err == nil && (document.Strategy.By == "" || s.By == ByRange && len(s.Ranges) == 0) {
		err = &FieldError{Field: "strategy", Found: fmt.Sprintf("%.80q", text), Expected: "a strategy"}
	}
	if err != nil {
		return Strategy{}, located("kiloshard.settings", lines, err)
	}
	return s, nil
}

// checkStrategyChange checks that no key changes its shard.
func checkStrategyChange(at string, a, b Strategy, shardsOfA, shardsOfB int) error {
	if a.By != b.By {
		if b.By == Directory && b.Otherwise != nil { // a new directory has no entries
			return checkStrategyChange(at+".otherwise", a, *b.Otherwise, shardsOfA, shardsOfB)
		}
		why := "nearly every key would be in another shard"
		if a.By == Directory {
			why = "the entries of the directory would be forgotten"
		}
		return changed(at+".by", a.By, b.By, why)
	}
	if b.RefuseIDs && !a.RefuseIDs {
		err := changed(at+".refuse_ids", false, true, "keys as large as IDs would have no shard")
		err.MovesKeys = true
		return err
	}
	if a.By == ByID {
		return nil
	}
	if a.By == ByRange {
		return checkRangesChange(at+".ranges", a.allRanges(), b.allRanges())
	}
	if a.Hash != b.Hash {
		return changed(at+".hash", a.Hash, b.Hash, "nearly every key would be in another shard")
	}
	if a.Digits != b.Digits {
		return changed(at+".digits", a.Digits, b.Digits, "nearly every key would be in another shard")
	}
	if ofA, ofB := a.divisor(shardsOfA), b.divisor(shardsOfB); ofA != ofB {
		why := "nearly every key would be in another shard"
		if a.By == Directory {
			why = "nearly every entry would be looked for in another shard"
		}
		return changed(at+".of", ofA, ofB, why+"; of: "+strconv.Itoa(ofA)+" keeps them where they are")
	}
	if a.Otherwise == nil {
		return nil // only keys with an entry have a shard
	}
	if b.Otherwise == nil {
		return changed(at+".otherwise", a.Otherwise, "none", "keys without an entry would have no shard")
	}
	return checkStrategyChange(at+".otherwise", *a.Otherwise, *b.Otherwise, shardsOfA, shardsOfB)
}

// allRanges returns the ranges in the largest map: a key that has no shard yet must get the one that it would have.
func (s Strategy) allRanges() []KeyRange { return s.rangesOf(1 << 16) }

// checkRangesChange checks that every key in a range of a has the same shard by the ranges of b. Neither is empty.
func checkRangesChange(at string, a, b []KeyRange) error {
	first, other := a[0].From, b[0].From
	switch {
	case first.kind != other.kind:
		return changed(at, first.written()+" and on", other.written()+" and on", "numbers and texts have different orders, so keys would be in other shards")
	case first.kind == textKey:
		if m, moved := pick.Moved(textRanges(a), textRanges(b)); moved {
			return movedKey(at, TextKey(m.Key), m.From, m.To)
		}
	default:
		if m, moved := pick.Moved(numberRanges(a), numberRanges(b)); moved {
			return movedKey(at, NumberKey(m.Key), m.From, m.To)
		}
	}
	return nil
}

// movedKey returns the error of a key, the first of many, that would leave its shard.
func movedKey(at string, key Key, from, to int32) error {
	target := "none"
	if to != pick.None {
		target = fmt.Sprintf("shard %d", to)
	}
	err := changed(at, fmt.Sprintf("shard %d for key %s", from, key.written()), target, "the rows of this key and those after it would stay behind")
	err.MovesKeys = true
	return err
}
