package changes

import (
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5"
)

// errShort means that a message ends too early.
var errShort = errors.New("a message of pgoutput ends too early")

// reader reads a message of pgoutput, version 1 of the protocol:
// https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
type reader struct {
	data []byte
	err  error
}

func (r *reader) bytes(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.data)) {
		r.err = errShort
	}
	if r.err != nil {
		return make([]byte, 8)
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) byte() byte     { return r.bytes(1)[0] }
func (r *reader) int16() int     { return int(binary.BigEndian.Uint16(r.bytes(2))) }
func (r *reader) uint32() uint32 { return binary.BigEndian.Uint32(r.bytes(4)) }
func (r *reader) lsn() LSN       { return LSN(binary.BigEndian.Uint64(r.bytes(8))) }

func (r *reader) string() string {
	for i, b := range r.data {
		if b == 0 {
			s := string(r.data[:i])
			r.data = r.data[i+1:]
			return s
		}
	}
	r.err = errShort
	return ""
}

// value is a value of a row. An unknown value has not changed, and is stored in the TOAST table.
type value struct {
	known bool
	text  []byte // nil for NULL
}

func (r *reader) tuple() []value {
	values := make([]value, r.int16())
	for i := range values {
		switch r.byte() {
		case 'n':
			values[i].known = true
		case 't':
			values[i] = value{known: true, text: append([]byte{}, r.bytes(int(r.uint32()))...)}
		}
	}
	return values
}

// column is a column of a replicated table.
type column struct {
	name    string
	key     bool   // it is part of the replica identity
	sqlType string // type, as SQL
}

// relation is a replicated table.
type relation struct {
	name    string
	full    bool // its replica identity is the whole row
	columns []column
}

func (r *relation) names() []string {
	var all []string
	for _, c := range r.columns {
		all = append(all, pgx.Identifier{c.name}.Sanitize())
	}
	return all
}

func (r *reader) relation() (uint32, *relation) {
	oid := r.uint32()
	_ = r.string() // the schema
	rel := &relation{name: r.string(), full: r.byte() == 'f'}
	for range r.int16() {
		c := column{key: r.byte()&1 != 0, name: r.string()}
		_ = r.bytes(8) // type and modifier
		rel.columns = append(rel.columns, c)
	}
	return oid, rel
}
