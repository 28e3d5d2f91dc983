package pick

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

// XXHash picks the remainder of a text's 64-bit xxHash, with seed 0, divided by of.
func XXHash(of int) Picker { return xxHash{uint64(of)} }

func (p xxHash) ForNumber(key int64) (int32, error) {
	var buffer [maxDigits]byte
	return int32(xxhash.Sum64(strconv.AppendInt(buffer[:0], key, 10)) % p.of), nil
}

func (p xxHash) ForText(key string) (int32, error) { return int32(xxhash.Sum64String(key) % p.of), nil }

func (p xxHash) Explain(key string) string {
	sum := xxhash.Sum64String(key)
	return fmt.Sprintf("xxhash(%q) = 0x%016x, mod %d = %d", key, sum, p.of, sum%p.of)
}

// md5Hash is the remainder of a text's MD5 digest.
type md5Hash struct{ of uint64 }

// MD5 picks the remainder of a text's MD5 digest, its 16 bytes as one big-endian number, divided by of.
func MD5(of int) Picker { return md5Hash{uint64(of)} }

func (p md5Hash) shard(digest [md5.Size]byte) int32 {
	high, low := binary.BigEndian.Uint64(digest[:8]), binary.BigEndian.Uint64(digest[8:])
	return int32(bits.Rem64(high, low, p.of))
}

func (p md5Hash) ForNumber(key int64) (int32, error) { return p.shard(digestOfNumber(key)), nil }
func (p md5Hash) ForText(key string) (int32, error)  { return p.shard(digestOfText(key)), nil }

func (p md5Hash) Explain(key string) string {
	digest := digestOfText(key)
	return fmt.Sprintf("md5(%q) = 0x%x, mod %d = %d", key, digest, p.of, p.shard(digest))
}

// hexHash is the remainder of the first hexadecimal digits of a text's MD5 digest.
type hexHash struct {
	of     uint64
	digits int
}

// Hex picks the remainder of the first hexadecimal digits, 1 to 16, of a text's MD5 digest divided by of.
func Hex(of, digits int) Picker { return hexHash{uint64(of), digits} }

func (p hexHash) first(digest [md5.Size]byte) uint64 {
	return binary.BigEndian.Uint64(digest[:8]) >> (64 - 4*p.digits)
}

func (p hexHash) ForNumber(key int64) (int32, error) {
	return int32(p.first(digestOfNumber(key)) % p.of), nil
}

func (p hexHash) ForText(key string) (int32, error) {
	return int32(p.first(digestOfText(key)) % p.of), nil
}

func (p hexHash) Explain(key string) string {
	digest := digestOfText(key)
	first := p.first(digest)
	return fmt.Sprintf("md5(%q) = %x, its first %d digits 0x%0*x, mod %d = %d", key, digest, p.digits, p.digits, first, p.of, first%p.of)
}

func digestOfNumber(key int64) [md5.Size]byte {
	var buffer [maxDigits]byte
	return md5.Sum(strconv.AppendInt(buffer[:0], key, 10))
}

func digestOfText(key string) [md5.Size]byte {
	var buffer [256]byte // on the stack, so that only longer keys allocate
	return md5.Sum(append(buffer[:0], key...))
}
