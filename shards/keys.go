package shards

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// keysOf returns the text of all that decides in which shard of count a key is: the strategy with its divisors, as
// kiloshard.yaml would have it.
func keysOf(s Strategy, count int) string { return s.deciding(count).String() }

// deciding returns the strategy without what does not decide the shard of a key that has one, and with its divisor.
func (s Strategy) deciding(count int) Strategy {
	s.RefuseIDs, s.Allocate = false, Allocation{}
	if s.By == Modulo || s.By == Hash || s.By == Directory {
		s.Of = s.divisor(count)
	}
	if s.Otherwise != nil {
		otherwise := s.Otherwise.deciding(count)
		s.Otherwise = &otherwise
	}
	return s
}

// KeysSum returns the SHA-256 of [Identity.Keys], in hexadecimal.
func (id Identity) KeysSum() string {
	sum := sha256.Sum256([]byte(id.Keys))
	return hex.EncodeToString(sum[:])
}

// CheckKeys reports whether keys that have a shard by the strategy from keep it by the strategy to; both are texts as in
// [Identity.Keys]. The error is a [ChangeError], or a [FieldError] for a text that cannot be read.
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

// FewerRanges reports whether the strategies from and to are ranges, and keys that have a shard by to have the same by from.
func FewerRanges(from, to string) bool {
	a, errA := parseKeys(from)
	b, errB := parseKeys(to)
	return errA == nil && errB == nil && a.By == ByRange && b.By == ByRange && checkRangesChange("", b, a) == nil
}

func parseKeys(text string) (Strategy, error) {
	var c Config
	lines, err := format.Decode([]byte("strategy: "+text), &c)
	if err == nil && c.Strategy.By == "" {
		err = &FieldError{Field: "strategy", Found: fmt.Sprintf("%.80q", text), Expected: "a strategy"}
	}
	if err != nil {
		return Strategy{}, located("kiloshard.settings", lines, err)
	}
	return c.Strategy.withDefaults(), nil
}
