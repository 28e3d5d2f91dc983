package shards

import "fmt"

// modulo is the remainder of a number.
type modulo struct{ of int64 }

func (s modulo) forKey(key int64) (Number, error) {
	n := key % s.of
	if n < 0 {
		n += s.of
	}
	return Number(n), nil
}

func (s modulo) forText(key string) (Number, error) {
	number, ok := parseNumber(key)
	if !ok {
		return 0, noShardFor(TextKey(key), "is not a 64-bit integer, which modulo needs")
	}
	return s.forKey(number)
}

func (s modulo) explain(key Key) string {
	n, _ := pick(s, key)
	return fmt.Sprintf("%s mod %d = %d", key, s.of, n)
}
