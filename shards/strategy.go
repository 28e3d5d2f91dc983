package shards

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
)

// The strategies of [Strategy].
const (
	Modulo    = "modulo"    // the remainder of a number
	Hash      = "hash"      // the remainder of a hash of any text
	ByRange   = "range"     // ranges of keys, each in one shard
	Directory = "directory" // a table that says where each key is
	ByID      = "id"        // a key is an ID, which names the shard that made it
)

// The hashes of [Strategy.Hash]. All hash the bytes of a key's text; a number is hashed as its decimal text.
const (
	// XXHash is the 64-bit xxHash with seed 0.
	XXHash = "xxhash"
	// MD5 is the whole digest: its 16 bytes as one big-endian number of 128 bits, which is what int(hexdigest, 16) is
	// in Python. Pinterest's mod shards are written this way: md5("1.2.3.4") % 4096.
	MD5 = "md5"
	// Hex is a part of the same digest: its first Digits hexadecimal digits as a number, which is what
	// ('x' || left(md5(key), 8))::bit(32)::bigint is in Postgres for 8 digits.
	Hex = "hex"
)

// defaultDigits are those of [Hex]: 32 bits.
const defaultDigits = 8

// Strategy says how a key picks its shard.
//
// Modulo and hash divide by Of, and nearly every key moves when Of changes: if shards may be opened later, set Of from
// the start. Nothing moves the rows of a range: [CheckChange] refuses ranges by which a key would leave its shard.
type Strategy struct {
	By string `json:"by" yaml:"by"` // Modulo, Hash, ByRange, Directory or ByID; defaults to Modulo

	// RefuseIDs makes modulo, hash and range refuse numbers as large as IDs with [ErrIsID]: all numbers from the
	// first ID that was made an hour after the epoch, or, if IDs have no time, from the first ID of shard 1. An ID
	// that is used as a key by mistake leads to another shard than that of its row, and the row is not found. Set it
	// if keys are smaller numbers, or texts. Defaults to false.
	RefuseIDs bool `json:"refuse_ids,omitempty" yaml:"refuse_ids,last"`

	// Of is the divisor of modulo and hash, and the number of shards, from 0 up, that hold a directory's entries.
	// Defaults to Config.Shards.
	Of int `json:"of,omitempty" yaml:"of"`

	Hash   string     `json:"hash,omitempty" yaml:"hash"`     // of Hash: XXHash, MD5 or Hex; defaults to XXHash
	Digits int        `json:"digits,omitempty" yaml:"digits"` // of Hex: 1 to 16; defaults to 8
	Ranges []KeyRange `json:"ranges,omitempty" yaml:"ranges"` // of ByRange: rising, of numbers or of texts

	// Next has the last of Ranges, of numbers, hold so many keys, and each range after it as many, in the next shard: with
	// ranges [{from: 0, shard: 0}] and next 1000000 key 2500000 is in shard 2. Keys after the last shard of the map have no shard: open more
	// in time. Defaults to 0: the last range does not end.
	Next int64 `json:"next,omitempty" yaml:"next"`

	// Otherwise is the strategy for keys that have no entry in the directory. If it is nil they have no shard.
	Otherwise *Strategy `json:"otherwise,omitempty" yaml:"otherwise"`
	// Allocate is how a directory chooses the shard of a new key, and ByID the shard that makes one.
	Allocate Allocation `json:"allocate,omitzero" yaml:"allocate"`
}

// ErrInDirectory says that only the directory knows the shard of a key: the map cannot compute it.
var ErrInDirectory = errors.New("the directory knows the shard of a key, the map does not")

// ErrIsID says that a key is an ID, which the strategy does not accept: see [Strategy.RefuseIDs].
var ErrIsID = errors.New("an ID is not a key of this strategy")

// withDefaults returns the strategy with its empty fields filled in, sharing no memory with s.
func (s Strategy) withDefaults() Strategy {
	if s.By == "" {
		s.By = Modulo
	}
	if s.By == Hash && s.Hash == "" {
		s.Hash = XXHash
	}
	if s.By == Hash && s.Hash == Hex && s.Digits == 0 {
		s.Digits = defaultDigits
	}
	if s.allocates() && s.Allocate.By == "" {
		s.Allocate.By = Weighted
	}
	s.Ranges = append([]KeyRange(nil), s.Ranges...)
	if s.Otherwise != nil {
		otherwise := s.Otherwise.withDefaults()
		otherwise.Allocate = s.Otherwise.Allocate // no default: allocation belongs to the directory
		s.Otherwise = &otherwise
	}
	return s
}

// allocates reports whether the strategy chooses the shards of new keys.
func (s Strategy) allocates() bool { return s.By == Directory || s.By == ByID }

// divisor returns the number that the strategy divides by in a map of count shards.
func (s Strategy) divisor(count int) int { return cmp.Or(s.Of, count) }

// forIdentity returns the strategy with its divisor, and with no other field than those that decide the shard of a key.
func (s Strategy) forIdentity(count int) Strategy {
	s.RefuseIDs, s.Allocate = false, Allocation{}
	if s.By == Modulo || s.By == Hash || s.By == Directory {
		s.Of = s.divisor(count)
	}
	if s.Otherwise != nil {
		otherwise := s.Otherwise.forIdentity(count)
		s.Otherwise = &otherwise
	}
	return s
}

// String returns the strategy as kiloshard.yaml has it.
func (s Strategy) String() string {
	fields := []string{"by: " + configfile.Plain(s.By)}
	add := func(name, value string) { fields = append(fields, name+": "+value) }
	if s.Hash != "" {
		add("hash", configfile.Plain(s.Hash))
	}
	if s.Digits != 0 {
		add("digits", strconv.Itoa(s.Digits))
	}
	if s.Of != 0 {
		add("of", strconv.Itoa(s.Of))
	}
	if s.RefuseIDs {
		add("refuse_ids", "true")
	}
	if len(s.Ranges) > 0 {
		ranges := make([]string, len(s.Ranges))
		for i, r := range s.Ranges {
			ranges[i] = r.written()
		}
		add("ranges", "["+strings.Join(ranges, ", ")+"]")
	}
	if s.Next != 0 {
		add("next", strconv.FormatInt(s.Next, 10))
	}
	if s.Otherwise != nil {
		add("otherwise", s.Otherwise.String())
	}
	if s.Allocate != (Allocation{}) {
		allocate := "{by: " + configfile.Plain(s.Allocate.By)
		if s.Allocate.Capacity != 0 {
			allocate += ", capacity: " + strconv.Itoa(s.Allocate.Capacity)
		}
		add("allocate", allocate+"}")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
