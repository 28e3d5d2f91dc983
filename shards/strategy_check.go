package shards

import (
	"fmt"
	"slices"
)

// check returns a [FieldError] for the first field that is wrong in a map of count shards. The field at is strategy, or
// strategy.otherwise, which must not be a directory again.
func (s Strategy) check(at string, count int) error {
	inDirectory := at != "strategy"
	if !slices.Contains([]string{Modulo, Hash, ByRange, ByID, Directory}, s.By) || inDirectory && s.By == Directory {
		if inDirectory {
			return &FieldError{Field: at + ".by", Found: quoted(s.By), Expected: "modulo, hash, range or id"}
		}
		return invalid(at+".by", quoted(s.By))
	}
	if err := s.checkUnused(at); err != nil {
		return err
	}
	if s.Of < 0 || s.Of > count {
		return &FieldError{Field: at + ".of", Found: fmt.Sprint(s.Of), Expected: fmt.Sprintf("1 to %d, since shards is %d", count, count)}
	}
	switch {
	case s.By == Hash:
		return s.checkHash(at, count)
	case s.By == ByRange:
		return s.checkRanges(at, count)
	case inDirectory && s.Allocate != (Allocation{}):
		return &FieldError{Field: at, Found: `unknown field "allocate"`, Expected: "allocate in the directory's own fields"}
	case s.allocates() && !inDirectory:
		if err := s.Allocate.check(at + ".allocate"); err != nil {
			return err
		}
	}
	if s.Otherwise != nil {
		return s.Otherwise.check(at+".otherwise", count)
	}
	return nil
}

// checkUnused refuses fields of other strategies, which would have no effect.
func (s Strategy) checkUnused(at string) error {
	for _, f := range []struct {
		name  string
		given bool
		by    []string
	}{
		{"of", s.Of != 0, []string{Modulo, Hash, Directory}},
		{"hash", s.Hash != "", []string{Hash}},
		{"digits", s.Digits != 0, []string{Hash}},
		{"ranges", len(s.Ranges) > 0, []string{ByRange}},
		{"next", s.Next != 0, []string{ByRange}},
		{"otherwise", s.Otherwise != nil, []string{Directory}},
		{"allocate", s.Allocate != Allocation{}, []string{Directory, ByID}},
		{"refuse_ids", s.RefuseIDs, []string{Modulo, Hash, ByRange}},
	} {
		if f.given && !slices.Contains(f.by, s.By) {
			return &FieldError{Field: at + "." + f.name, Found: "a field that " + s.By + " does not have", Expected: "none"}
		}
	}
	return nil
}

func (s Strategy) checkHash(at string, count int) error {
	if !slices.Contains([]string{XXHash, MD5, Hex}, s.Hash) {
		return invalid(at+".hash", quoted(s.Hash))
	}
	if s.Hash != Hex {
		if s.Digits != 0 {
			return &FieldError{Field: at + ".digits", Found: fmt.Sprint(s.Digits), Expected: "none: only hex has digits"}
		}
		return nil
	}
	of, least := s.divisor(count), 1
	for 1<<(4*least) < of {
		least++
	}
	if s.Digits < least || s.Digits > 16 {
		return &FieldError{Field: at + ".digits", Found: fmt.Sprint(s.Digits), Expected: fmt.Sprintf("%d to 16, to reach each of %d shards", least, of)}
	}
	return nil
}

func (s Strategy) checkRanges(at string, count int) error {
	if len(s.Ranges) == 0 {
		return &FieldError{Field: at + ".ranges", Found: "none", Expected: "ranges such as {from: 0, shard: 0}"}
	}
	for i, r := range s.Ranges {
		field := fmt.Sprintf("%s.ranges[%d]", at, i)
		switch {
		case r.From.IsZero():
			return &FieldError{Field: field + ".from", Found: "missing", Expected: `the first key of the range, such as 1000000 or "m"`}
		case r.From.kind != s.Ranges[0].From.kind:
			return &FieldError{Field: field + ".from", Found: r.From.written(), Expected: "a key of the same kind as " + s.Ranges[0].From.written() + ": all numbers, or all texts in quotes"}
		case !r.From.isText():
			return &FieldError{Field: field + ".from", Found: "bytes that are not text", Expected: "text in UTF-8"}
		case i > 0 && r.From.compare(s.Ranges[i-1].From) <= 0:
			return &FieldError{Field: field + ".from", Found: r.From.written() + " after " + s.Ranges[i-1].From.written(), Expected: "ranges in rising order"}
		case r.Shard < 0 || int(r.Shard) >= count:
			return &FieldError{Field: field + ".shard", Found: fmt.Sprint(r.Shard), Expected: fmt.Sprintf("0 to %d, since shards is %d", count-1, count)}
		}
		if err := s.checkEnd(field+".to", i); err != nil {
			return err
		}
	}
	return s.checkNext(at)
}

// checkNext checks the ranges after the last one.
func (s Strategy) checkNext(at string) error {
	last := s.Ranges[len(s.Ranges)-1]
	switch {
	case s.Next < 0:
		return &FieldError{Field: at + ".next", Found: fmt.Sprint(s.Next), Expected: "how many keys each further range holds, such as 1000000"}
	case s.Next > 0 && last.From.kind != numberKey:
		return &FieldError{Field: at + ".next", Found: fmt.Sprint(s.Next), Expected: "none: only ranges of numbers go on"}
	case s.Next > 0 && !last.To.IsZero():
		return &FieldError{Field: fmt.Sprintf("%s.ranges[%d].to", at, len(s.Ranges)-1), Found: last.To.written(), Expected: "none in the last range, since next says where it ends"}
	}
	return nil
}

// checkEnd checks that no key is in two ranges.
func (s Strategy) checkEnd(field string, i int) error {
	r := s.Ranges[i]
	switch {
	case r.To.IsZero():
	case r.To.kind != r.From.kind:
		return &FieldError{Field: field, Found: r.To.written(), Expected: "a key of the same kind as " + r.From.written()}
	case !r.To.isText():
		return &FieldError{Field: field, Found: "bytes that are not text", Expected: "text in UTF-8"}
	case r.To.compare(r.From) <= 0:
		return &FieldError{Field: field, Found: r.To.written(), Expected: "a key above " + r.From.written() + ", or none for all up to the next range"}
	case i+1 < len(s.Ranges) && s.Ranges[i+1].From.kind == r.To.kind && r.To.compare(s.Ranges[i+1].From) > 0:
		found := r.To.written() + ", which overlaps the range from " + s.Ranges[i+1].From.written()
		return &FieldError{Field: field, Found: found, Expected: "each key in one range"}
	}
	return nil
}
