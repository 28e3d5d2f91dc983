package sqldb

import (
	"database/sql/driver"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rows are the rows of a statement. The first row is read in advance, because errors of the query come with it.
type rows struct {
	pgx.Rows
	fields []pgconn.FieldDescription
	types  []*pgtype.Type // nil for a type that pgx does not know
	ahead  bool           // the row that was read is not returned yet
}

// newRows copies the descriptions of the columns. They belong to the connection, which is given back when the rows end, and they
// may end here.
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

// value returns the value of a column as a [driver.Value].
func (r *rows) value(i int, raw []byte) (driver.Value, error) {
	if raw == nil {
		return nil, nil
	}
	field := r.fields[i]
	if r.types[i] == nil || !decoded(field.DataTypeOID) {
		return string(raw), nil // formats has requested the text format
	}
	return r.types[i].Codec.DecodeDatabaseSQLValue(r.TypeMap(), field.DataTypeOID, field.Format, raw)
}

// formats requests the binary format for types that database/sql has, and text for the others. It is an argument of Query.
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

// decoded reports whether values of a type are returned decoded, not as text.
func decoded(oid uint32) bool {
	switch oid {
	case pgtype.JSONOID, pgtype.JSONBOID, pgtype.XMLOID: // bytes
		return true
	}
	_, binary := formats[oid]
	return binary
}
