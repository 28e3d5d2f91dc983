package sqldb

import (
	"database/sql/driver"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rows are those of one statement, the first one read already: with it come the errors of a query.
type rows struct {
	pgx.Rows
	fields []pgconn.FieldDescription
	types  []*pgtype.Type // nil where pgx knows none
	ahead  bool           // the present row is not handed out yet
}

// newRows keeps what there is to say about the columns, since rows that have come to their end, which may be now, have
// given their connection back, and all that belongs to it.
func newRows(inner pgx.Rows) (*rows, error) {
	r := &rows{Rows: inner, fields: slices.Clone(inner.FieldDescriptions())}
	r.types = make([]*pgtype.Type, len(r.fields))
	for i, field := range r.fields {
		if known, ok := inner.TypeMap().TypeForOID(field.DataTypeOID); ok {
			r.types[i] = known
		}
	}
	if r.ahead = inner.Next(); !r.ahead && inner.Err() != nil {
		return nil, failed(inner.Err())
	}
	return r, nil
}

func (r *rows) Columns() []string {
	names := make([]string, len(r.fields))
	for i, field := range r.fields {
		names[i] = field.Name
	}
	return names
}

func (r *rows) Close() error {
	r.Rows.Close()
	return failed(r.Err())
}

func (r *rows) Next(dest []driver.Value) error {
	if !r.ahead && !r.Rows.Next() {
		if err := r.Err(); err != nil {
			return failed(err)
		}
		return io.EOF
	}
	r.ahead = false
	for i, raw := range r.RawValues() {
		value, err := r.value(i, raw)
		if err != nil {
			return err
		}
		dest[i] = value
	}
	return nil
}

// value returns the value of a column as one of the types of [driver.Value].
func (r *rows) value(i int, raw []byte) (driver.Value, error) {
	if raw == nil {
		return nil, nil
	}
	field := r.fields[i]
	if r.types[i] == nil || !decoded(field.DataTypeOID) {
		return string(raw), nil // in the text form, by formats
	}
	return r.types[i].Codec.DecodeDatabaseSQLValue(r.TypeMap(), field.DataTypeOID, field.Format, raw)
}

// formats asks in binary for what database/sql has a type for, and leaves the rest in text. It is an argument to Query.
var formats = pgx.QueryResultFormatsByOID{
	pgtype.BoolOID:        pgx.BinaryFormatCode,
	pgtype.ByteaOID:       pgx.BinaryFormatCode,
	pgtype.Int2OID:        pgx.BinaryFormatCode,
	pgtype.Int4OID:        pgx.BinaryFormatCode,
	pgtype.Int8OID:        pgx.BinaryFormatCode,
	pgtype.Float4OID:      pgx.BinaryFormatCode,
	pgtype.Float8OID:      pgx.BinaryFormatCode,
	pgtype.DateOID:        pgx.BinaryFormatCode,
	pgtype.TimestampOID:   pgx.BinaryFormatCode,
	pgtype.TimestamptzOID: pgx.BinaryFormatCode,
	pgtype.OIDOID:         pgx.BinaryFormatCode,
	pgtype.XIDOID:         pgx.BinaryFormatCode,
	pgtype.CIDOID:         pgx.BinaryFormatCode,
}

// decoded tells of which types a value is more than its text.
func decoded(oid uint32) bool {
	switch oid {
	case pgtype.JSONOID, pgtype.JSONBOID, pgtype.XMLOID: // bytes
		return true
	}
	_, binary := formats[oid]
	return binary
}
