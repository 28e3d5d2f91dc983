package ids

import (
	"encoding/binary"
	"errors"
)

var errArray = errors.New("expected a one-dimensional array in binary format")

// eachElement calls fn with each element of a Postgres array in the binary format. It passes the raw
// bytes: pgx would decode each element, which costs more than making an ID.
//
// The format is that of array_send in Postgres's arrayfuncs.c: dimensions, flags and element type,
// then length and lower bound, then each element's length and bytes; all numbers of 4 bytes, the
// highest first.
func eachElement(raw []byte, fn func(element []byte)) error {
	const header = 20
	if len(raw) < header || binary.BigEndian.Uint32(raw) != 1 {
		return errArray
	}
	rest := raw[header:]
	for range binary.BigEndian.Uint32(raw[12:]) {
		if len(rest) < 4 {
			return errArray
		}
		length := int32(binary.BigEndian.Uint32(rest))
		rest = rest[4:]
		if length < 0 || len(rest) < int(length) {
			return errArray
		}
		fn(rest[:length])
		rest = rest[length:]
	}
	return nil
}
