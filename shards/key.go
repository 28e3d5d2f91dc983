package shards

import (
	"encoding/json"
	"strconv"
	"strings"
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

// compare orders two keys of one kind: numbers by their value, texts by their bytes.
func (k Key) compare(other Key) int {
	if k.kind == textKey {
		return strings.Compare(k.text, other.text)
	}
	switch {
	case k.number < other.number:
		return -1
	case k.number > other.number:
		return 1
	}
	return 0
}

// written returns the key as kiloshard.yaml has it, a text in quotes.
func (k Key) written() string {
	if k.kind == textKey {
		return strconv.Quote(k.text)
	}
	return k.String()
}

// maxDigits is the length of the longest int64 in decimal.
const maxDigits = len("-9223372036854775808")

// parseNumber parses a decimal number without a plus sign or leading zeros.
func parseNumber(text string) (int64, bool) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(text) > maxDigits || digits[0] == '0' && text != "0" {
		return 0, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil
}
