package shards

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// xxHash is the remainder of a text's xxHash.
type xxHash struct{ of uint64 }

func (s xxHash) forKey(key int64) (Number, error) {
	var buffer [maxDigits]byte
	return Number(xxhash.Sum64(strconv.AppendInt(buffer[:0], key, 10)) % s.of), nil
}

func (s xxHash) forText(key string) (Number, error) {
	return Number(xxhash.Sum64String(key) % s.of), nil
}

func (s xxHash) explain(key Key) string {
	sum := xxhash.Sum64String(key.String())
	return fmt.Sprintf("xxhash(%q) = 0x%016x, mod %d = %d", key, sum, s.of, sum%s.of)
}

// md5Hash is the remainder of a text's MD5 digest as one number.
type md5Hash struct{ of uint64 }

func (s md5Hash) shard(digest [md5.Size]byte) Number {
	high, low := binary.BigEndian.Uint64(digest[:8]), binary.BigEndian.Uint64(digest[8:])
	return Number(bits.Rem64(high, low, s.of))
}

// MD5Shard returns the shard of any bytes among of shards, 1 or more: the remainder of their MD5 digest, its 16 bytes as one
// big-endian number, as for Pinterest's mod shards. The article prints 1524 for md5("1.2.3.4") % 4096, which
// is the result for the same text with a newline at its end; without the newline it is 1537.
func MD5Shard(key []byte, of int) Number { return md5Hash{uint64(of)}.shard(md5.Sum(key)) }

func (s md5Hash) forKey(key int64) (Number, error)   { return s.shard(digestOfNumber(key)), nil }
func (s md5Hash) forText(key string) (Number, error) { return s.shard(digestOfText(key)), nil }

func (s md5Hash) explain(key Key) string {
	digest := digestOfText(key.String())
	return fmt.Sprintf("md5(%q) = 0x%x, mod %d = %d", key, digest, s.of, s.shard(digest))
}

// hexHash is the remainder of the first hexadecimal digits of a text's MD5 digest.
type hexHash struct {
	of     uint64
	digits int
}

func (s hexHash) first(digest [md5.Size]byte) uint64 {
	return binary.BigEndian.Uint64(digest[:8]) >> (64 - 4*s.digits)
}

func (s hexHash) forKey(key int64) (Number, error) {
	return Number(s.first(digestOfNumber(key)) % s.of), nil
}

func (s hexHash) forText(key string) (Number, error) {
	return Number(s.first(digestOfText(key)) % s.of), nil
}

func (s hexHash) explain(key Key) string {
	digest := digestOfText(key.String())
	first := s.first(digest)
	return fmt.Sprintf("md5(%q) = %x, its first %d digits 0x%0*x, mod %d = %d", key, digest, s.digits, s.digits, first, s.of, first%s.of)
}

func digestOfNumber(key int64) [md5.Size]byte {
	var buffer [maxDigits]byte
	return md5.Sum(strconv.AppendInt(buffer[:0], key, 10))
}

func digestOfText(key string) [md5.Size]byte {
	var buffer [256]byte // on the stack, so that only longer keys allocate
	return md5.Sum(append(buffer[:0], key...))
}
