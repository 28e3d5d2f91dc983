package pick

import (
	"fmt"
	"strconv"
	"strings"
)

// Picker finds the shard of a key. It is safe for concurrent use. A number and its decimal text, such as 42 and "42",
// are the same key.
type Picker interface {
	// ForNumber and ForText return the shard of a key. The error says why the key has none. They allocate nothing
	// without an error, but for a text of more than 256 bytes with md5.
	ForNumber(key int64) (int32, error)
	ForText(key string) (int32, error)
	// Explain returns the arithmetic for a key that has a shard, such as "31341 mod 2048 = 1341".
	Explain(key string) string
}

// maxDigits is the length of the longest int64 in decimal.
const maxDigits = len("-9223372036854775808")

// ParseNumber parses a decimal number without a plus sign or leading zeros.
func ParseNumber(text string) (int64, bool) {
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

// modulo is the remainder of a number.
type modulo struct{ of int64 }

// Modulo picks the remainder of a number divided by of.
func Modulo(of int) Picker { return modulo{int64(of)} }

func (p modulo) ForNumber(key int64) (int32, error) {
	n := key % p.of
	if n < 0 {
		n += p.of
	}
	return int32(n), nil
}

func (p modulo) ForText(key string) (int32, error) {
	number, ok := ParseNumber(key)
	if !ok {
		return 0, fmt.Errorf("key %q is not a 64-bit integer, which modulo needs", key)
	}
	return p.ForNumber(number)
}

func (p modulo) Explain(key string) string {
	n, _ := p.ForText(key)
	return fmt.Sprintf("%s mod %d = %d", key, p.of, n)
}
