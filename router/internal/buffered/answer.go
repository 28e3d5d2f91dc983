// Package buffered has answers of a server in memory, and their rows, which hold no connection.
package buffered

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Answer is what the server said to one statement, read off the wire.
type Answer struct {
	fields []pgconn.FieldDescription
	Tag    pgconn.CommandTag
	bytes  []byte  // of all values, one after another
	ends   []int32 // where each value ends in bytes; the complement of that for null
	count  int     // how many rows: those without columns have no values

	// What a short answer needs comes with it.
	shortBytes [64]byte
	shortEnds  [8]int32
	rows       answerRows
}

// New returns an answer without rows.
func New(fields []pgconn.FieldDescription) *Answer {
	a := &Answer{fields: fields}
	a.bytes, a.ends = a.shortBytes[:0], a.shortEnds[:0] // a value without bytes is not null, which a slice of nil would be
	return a
}

// Size returns about how much memory the values take, in bytes.
func (a *Answer) Size() int { return len(a.bytes) + 4*len(a.ends) }

// Add copies a row.
func (a *Answer) Add(row [][]byte) {
	a.count++
	for _, value := range row {
		a.bytes = append(a.bytes, value...)
		end := int32(len(a.bytes))
		if value == nil {
			end = ^end
		}
		a.ends = append(a.ends, end)
	}
}

var errRowsClosed = errors.New("rows is closed")

// answerRows are the rows of an answer. They hold no connection.
type answerRows struct {
	*Answer
	host  *Types
	types *typeMap // borrowed from the host until the rows are closed

	read   int // how many rows have been
	next   int // into ends
	start  int32
	row    [][]byte
	plans  []plan   // by column
	narrow struct { // room for them where there are few columns
		row   [8][]byte
		plans [8]plan
	}
	closed bool
	err    error
}

// plan is how a column is read into a destination of one kind.
type plan struct {
	pgtype.ScanPlan
	kind reflect.Type
}

// Rows returns the rows of an answer of a host. They hold no connection. Call it once.
func (a *Answer) Rows(host *Types) *answerRows {
	r := &a.rows
	r.Answer, r.host, r.types = a, host, host.borrow()
	return r
}

func (r *answerRows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.host.giveBack(r.types)
}

func (r *answerRows) Err() error                                   { return r.err }
func (r *answerRows) CommandTag() pgconn.CommandTag                { return r.Tag }
func (r *answerRows) FieldDescriptions() []pgconn.FieldDescription { return r.fields }
func (r *answerRows) RawValues() [][]byte                          { return r.row }
func (r *answerRows) Conn() *pgx.Conn                              { return nil }
func (r *answerRows) TypeMap() *pgtype.Map                         { return r.types.Map }

func (r *answerRows) Next() bool {
	if r.closed {
		return false
	}
	if r.read == r.count {
		r.Close()
		return false
	}
	r.read++
	if r.row == nil {
		r.row = upTo(r.narrow.row[:], len(r.fields))
	}
	for i := range r.row {
		end := r.ends[r.next]
		r.next++
		if end < 0 {
			r.row[i] = nil
			continue
		}
		r.row[i] = r.bytes[r.start:end:end]
		r.start = end
	}
	return true
}

// upTo returns n elements: those of some room if that has as many.
func upTo[T any](room []T, n int) []T {
	if n > len(room) {
		return make([]T, n)
	}
	return room[:n:n]
}

// Scan does what pgx's own rows do: after an error the rows are closed.
func (r *answerRows) Scan(dest ...any) error {
	err := r.scan(dest)
	if err != nil && r.err == nil {
		r.err = err
		r.Close()
	}
	return err
}

func (r *answerRows) scan(dest []any) error {
	if len(dest) == 1 {
		if scanner, ok := dest[0].(pgx.RowScanner); ok {
			return scanner.ScanRow(r)
		}
	}
	switch {
	case r.row == nil || r.closed:
		return errRowsClosed
	case len(r.row) != len(dest):
		return fmt.Errorf("number of field descriptions must equal number of destinations, got %d and %d", len(r.row), len(dest))
	case r.plans == nil:
		r.plans = upTo(r.narrow.plans[:], len(dest))
	}
	for i, to := range dest {
		if to == nil {
			continue
		}
		p, field := &r.plans[i], &r.fields[i]
		if kind := reflect.TypeOf(to); p.kind != kind {
			p.ScanPlan = r.types.own(field.DataTypeOID).PlanScan(field.DataTypeOID, field.Format, to)
			p.kind = kind
		}
		if err := p.Scan(r.row[i], to); err != nil {
			return pgx.ScanArgError{ColumnIndex: i, FieldName: r.fields[i].Name, Err: err}
		}
	}
	return nil
}

func (r *answerRows) Values() ([]any, error) {
	if r.closed || r.row == nil {
		return nil, errRowsClosed
	}
	values := make([]any, len(r.row))
	for i, raw := range r.row {
		if raw == nil {
			continue
		}
		value, err := r.value(r.fields[i], raw)
		if err != nil {
			r.err = err
			r.Close()
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

// value decodes a value of a type that pgx knows; any other is a string, or bytes if it came in the binary format.
func (r *answerRows) value(field pgconn.FieldDescription, raw []byte) (any, error) {
	if known, ok := r.types.own(field.DataTypeOID).TypeForOID(field.DataTypeOID); ok {
		return known.Codec.DecodeValue(r.types.Map, field.DataTypeOID, field.Format, raw)
	}
	if field.Format == pgtype.BinaryFormatCode {
		return append([]byte(nil), raw...), nil
	}
	return string(raw), nil
}
