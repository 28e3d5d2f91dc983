package router

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// answer is what the server said to one statement, read off the wire: all of it, or the first part if it is long.
type answer struct {
	fields []pgconn.FieldDescription
	tag    pgconn.CommandTag // with the last part
	bytes  []byte            // of all values, one after another
	ends   []int32           // where each value ends in bytes; the complement of that for null
	count  int               // how many rows: those without columns have no values
	err    error             // that came after these rows

	more chan *answer  // the parts that follow, nil if this is all; closed after the last
	quit chan struct{} // closed by the caller when it wants no more of them
}

// add copies a row.
func (a *answer) add(row [][]byte) {
	if a.bytes == nil { // a value without bytes is not null, which a part of nil would be
		a.bytes = make([]byte, 0, 64)
	}
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
	*answer
	ctx   context.Context
	home  *home
	types *typeMap // borrowed from the host until the rows are closed
	more  <-chan *answer
	quit  chan<- struct{}

	read   int // how many rows have been
	next   int // into ends
	start  int32
	row    [][]byte
	plans  []plan // by column
	closed bool
	err    error
}

// plan is how a column is read into a destination of one kind.
type plan struct {
	pgtype.ScanPlan
	kind reflect.Type
}

// rows returns the rows of an answer to a caller, whose context governs the wait for further parts.
func (a *answer) rows(ctx context.Context, h *home) *answerRows {
	return &answerRows{answer: a, ctx: ctx, home: h, types: h.host.types.borrow(), more: a.more, quit: a.quit}
}

func (r *answerRows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	if r.more != nil {
		close(r.quit)
		for part := range r.more { // the last one may be on its way
			r.answer = part
		}
	}
	if r.err == nil {
		r.err = r.home.failed(r.answer.err)
	}
	r.home.host.types.giveBack(r.types)
}

// turn goes on to the next part of a long answer. It returns false if there is none.
func (r *answerRows) turn() bool {
	if r.more == nil || r.answer.err != nil {
		return false
	}
	select {
	case part, ok := <-r.more:
		if !ok {
			r.more = nil
			return false
		}
		r.answer, r.read, r.next, r.start = part, 0, 0, 0
		return true
	case <-r.ctx.Done():
		r.err = r.home.failed(r.ctx.Err())
		close(r.quit) // whoever reads the rest need not be waited for
		r.more = nil
		return false
	}
}

func (r *answerRows) Err() error                                   { return r.err }
func (r *answerRows) CommandTag() pgconn.CommandTag                { return r.tag }
func (r *answerRows) FieldDescriptions() []pgconn.FieldDescription { return r.fields }
func (r *answerRows) RawValues() [][]byte                          { return r.row }
func (r *answerRows) Conn() *pgx.Conn                              { return nil }
func (r *answerRows) TypeMap() *pgtype.Map                         { return r.types.Map }

func (r *answerRows) Next() bool {
	if r.closed {
		return false
	}
	for r.read == r.count {
		if !r.turn() {
			r.Close()
			return false
		}
	}
	r.read++
	if r.row == nil {
		r.row = make([][]byte, len(r.fields))
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
		r.plans = make([]plan, len(dest))
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
