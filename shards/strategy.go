package shards

import (
	"errors"
	"fmt"
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
// the start. A change of ranges or of a directory moves only the keys that it names.
type Strategy struct {
	By string `json:"by" yaml:"by"` // Modulo, Hash, ByRange, Directory or ByID; defaults to Modulo

	// RefuseIDs makes modulo, hash and range refuse numbers as large as IDs with [ErrIsID]: all numbers from the first ID
	// that was made an hour after the epoch, or, if IDs have no time, from the first ID of shard 1. An ID that is used as
	// a key by mistake leads to another shard than that of its row, and the row is not found. Set it if keys are smaller
	// numbers, or texts. Defaults to false.
	RefuseIDs bool `json:"refuse_ids,omitempty" yaml:"refuse_ids,last"`

	// Of is the divisor of modulo and hash, and the number of shards, from 0 up, that hold a directory's entries.
	// Defaults to Config.Shards.
	Of int `json:"of,omitempty" yaml:"of"`

	Hash   string     `json:"hash,omitempty" yaml:"hash"`     // of Hash: XXHash, MD5 or Hex; defaults to XXHash
	Digits int        `json:"digits,omitempty" yaml:"digits"` // of Hex: 1 to 16; defaults to 8
	Ranges []KeyRange `json:"ranges,omitempty" yaml:"ranges"` // of ByRange: rising, of numbers or of texts

	// Otherwise is the strategy for keys that have no entry in the directory. If it is nil they have no shard.
	Otherwise *Strategy `json:"otherwise,omitempty" yaml:"otherwise"`
	// Allocate is how a directory chooses the shard of a new key, and ByID the shard that makes one.
	Allocate Allocation `json:"allocate,omitzero" yaml:"allocate"`
}

// The ways of [Allocation] to choose a shard. None chooses one on a closed host, or one that is full.
const (
	// Weighted chooses a random host, one of weight 2 twice as often as one of weight 1, and any of its shards.
	Weighted = "weighted"
	// LeastUsed chooses the shard with the fewest keys.
	LeastUsed = "least_used"
	// MostLeft chooses the shard with the most room: its capacity less its keys.
	MostLeft = "capacity"
)

// Allocation is how a directory chooses the shard of a new key, and [ByID] the shard that makes one.
type Allocation struct {
	By       string `json:"by" yaml:"by"`                       // Weighted, LeastUsed or MostLeft; defaults to Weighted
	Capacity int    `json:"capacity,omitempty" yaml:"capacity"` // the most keys in one shard; defaults to no limit. See Host.Capacity
}

// ErrInDirectory says that only the directory knows the shard of a key: the map cannot compute it.
var ErrInDirectory = errors.New("the directory knows the shard of a key, the map does not")

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
		otherwise.Allocate = s.Otherwise.Allocate // which belongs to the directory
		s.Otherwise = &otherwise
	}
	return s
}

// picker computes the shard of a key. forKey and forText allocate nothing unless they return an error.
type picker interface {
	forKey(key int64) (Number, error)
	forText(key string) (Number, error)
	// explain returns the arithmetic done for a key that has a shard, for people.
	explain(key Key) string
}

// allocates reports whether the strategy chooses the shards of new keys.
func (s Strategy) allocates() bool { return s.By == Directory || s.By == ByID }

// picker returns the picker of a strategy. Strategy and config must be valid.
func (s Strategy) picker(c Config) picker {
	ids := byID{c.Layout, c.Epoch, c.Shards}
	switch {
	case s.By == ByID:
		return ids
	case s.RefuseIDs:
		return notIDs{s.arithmetic(c.Shards), s.By, ids}
	}
	return s.arithmetic(c.Shards)
}

// arithmetic returns the picker of a strategy other than ByID, over count shards.
func (s Strategy) arithmetic(count int) picker {
	of := uint64(count)
	if s.Of != 0 {
		of = uint64(s.Of)
	}
	switch {
	case s.By == Directory:
		return inDirectory{}
	case s.By == ByRange:
		return pickerOfRanges(s.Ranges)
	case s.By == Modulo:
		return modulo{int64(of)}
	case s.Hash == MD5:
		return md5Hash{of}
	case s.Hash == Hex:
		return hexHash{of, s.Digits}
	}
	return xxHash{of}
}

// ForKey returns the shard of a number by the map's strategy. It allocates nothing.
//
// With modulo it is the remainder of the number, 0 or more even if the number is negative; with hash it is the shard of the
// number's decimal text; with [ByID] it is [Map.ForID]. It returns [ErrNoShard] for a number in no range, [ErrInDirectory]
// for a directory, and [ErrIsID] for an ID that [Strategy.RefuseIDs] refuses.
func (m *Map) ForKey(key int64) (Number, error) { return m.picker.forKey(key) }

// ForText returns the shard of a text by the map's strategy. It allocates only for texts of more than 256 bytes with md5
// or hex. For the decimal text of a number it is the shard of the number.
//
// It returns [ErrNoShard] for a text in no range, and for a text that is not a number if the strategy needs numbers, as
// modulo, ranges of numbers and IDs do; [ErrInDirectory] and [ErrIsID] as ForKey does.
func (m *Map) ForText(key string) (Number, error) { return m.picker.forText(key) }

// For returns the result of [Map.ForKey] or [Map.ForText], and [ErrNoShard] for the zero Key.
func (m *Map) For(key Key) (Number, error) { return pick(m.picker, key) }

// Explain returns the arithmetic by which a key picks its shard, such as "31341 mod 2048 = 1341", for people. It is
// empty if [Map.For] returns an error.
func (m *Map) Explain(key Key) string {
	if _, err := m.For(key); err != nil {
		return ""
	}
	return m.picker.explain(key)
}

func pick(p picker, key Key) (Number, error) {
	switch key.kind {
	case numberKey:
		return p.forKey(key.number)
	case textKey:
		return p.forText(key.text)
	}
	return 0, fmt.Errorf("no key: %w", ErrNoShard)
}

// Strategy returns how a key picks its shard. The caller must not change its slices.
func (m *Map) Strategy() Strategy { return m.config.Strategy }

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

func noShardFor(key Key, why string) error {
	return fmt.Errorf("key %s %s: %w", key.written(), why, ErrNoShard)
}
