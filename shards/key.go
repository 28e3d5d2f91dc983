package shards

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Key is a whole number or a text that picks a shard. A number and its decimal text, such as 42 and "42", are the same
// key to every strategy. [NumberKey] and [TextKey] make one; the zero Key is no key.
type Key struct {
	kind   keyKind
	number int64
	text   string
}

type keyKind uint8

const (
	noKey keyKind = iota
	numberKey
	textKey
)

// NumberKey returns a number, such as a user's ID, as a key.
func NumberKey(number int64) Key { return Key{kind: numberKey, number: number} }

// TextKey returns a text, such as an address, as a key. The empty text is a key too.
func TextKey(text string) Key { return Key{kind: textKey, text: text} }

// IsZero reports whether k is the zero Key.
func (k Key) IsZero() bool { return k.kind == noKey }

// String returns the text, or the number as its decimal text.
func (k Key) String() string {
	if k.kind == numberKey {
		return strconv.FormatInt(k.number, 10)
	}
	return k.text
}

// MarshalJSON writes a number or a text, as the key was made, and null for the zero Key.
func (k Key) MarshalJSON() ([]byte, error) {
	switch k.kind {
	case numberKey:
		return strconv.AppendInt(nil, k.number, 10), nil
	case textKey:
		return json.Marshal(k.text)
	}
	return []byte("null"), nil
}

// isText reports whether a key can be written as YAML.
func (k Key) isText() bool { return utf8.ValidString(k.text) }

// compare orders two keys of one kind: numbers by their value, texts by their bytes.
func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.number, other.number), cmp.Compare(k.text, other.text))
}

// written returns the key as kiloshard.yaml has it, a text in quotes.
func (k Key) written() string {
	if k.kind == textKey {
		return strconv.Quote(k.text)
	}
	return k.String()
}

// KeyRange maps the keys in [From, To) to one shard. Without To it ends where the next range begins, and the last range
// does not end. Numbers are ordered by value, texts by their bytes in UTF-8.
type KeyRange struct {
	From  Key    `json:"from" yaml:"from"`
	To    Key    `json:"to,omitzero" yaml:"to,omitempty"`
	Shard Number `json:"shard" yaml:"shard,zero,required"`
}

// written returns the range as kiloshard.yaml has it.
func (r KeyRange) written() string {
	to := ""
	if !r.To.IsZero() {
		to = ", to: " + r.To.written()
	}
	return fmt.Sprintf("{from: %s%s, shard: %d}", r.From.written(), to, r.Shard)
}
