package router

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

var errNoRow = errors.New("there is no row to read: Next was not called, or the rows are closed")

// bufferedRows are rows in memory. They hold no connection.
type bufferedRows struct {
	types  *pgtype.Map
	fields []pgconn.FieldDescription
	tag    pgconn.CommandTag
	left   [][][]byte // rows not come to yet
	row    [][]byte   // the current one; nil if there is none
	err    error      // of reading a value
}

// buffer reads rows to their end, and so gives their connection back.
func buffer(rows pgx.Rows) (pgx.Rows, error) {
	defer rows.Close()
	b := &bufferedRows{types: ownTypes(rows.TypeMap()), fields: slices.Clone(rows.FieldDescriptions())}
	for rows.Next() {
		raw := rows.RawValues()
		row := make([][]byte, len(raw))
		for i, value := range raw {
			row[i] = slices.Clone(value) // pgx reads the next row into the same bytes; NULL stays nil
		}
		b.left = append(b.left, row)
	}
	if err := rows.Err(); err != nil {
		return failedRows{err}, err
	}
	b.tag = rows.CommandTag()
	return b, nil
}

// ownTypes copies the types of a connection, which the next one who has that connection uses, and which keep notes of
// whatever they have decoded.
func ownTypes(of *pgtype.Map) *pgtype.Map {
	types := of.Copy()
	types.TryWrapScanPlanFuncs = slices.Clone(of.TryWrapScanPlanFuncs) // which Copy leaves out
	return types
}

func (b *bufferedRows) Close() { b.left, b.row = nil, nil }

func (b *bufferedRows) Err() error { return b.err }

func (b *bufferedRows) CommandTag() pgconn.CommandTag { return b.tag }

func (b *bufferedRows) FieldDescriptions() []pgconn.FieldDescription { return b.fields }

func (b *bufferedRows) Next() bool {
	if len(b.left) == 0 {
		b.Close()
		return false
	}
	b.row, b.left = b.left[0], b.left[1:]
	return true
}

func (b *bufferedRows) Scan(dest ...any) error {
	if b.row == nil {
		return b.check(errNoRow)
	}
	if len(dest) == 1 {
		if whole, ok := dest[0].(pgx.RowScanner); ok {
			return b.check(whole.ScanRow(b))
		}
	}
	return b.check(pgx.ScanRow(b.types, b.fields, b.row, dest...))
}

func (b *bufferedRows) Values() ([]any, error) {
	if b.row == nil {
		return nil, b.check(errNoRow)
	}
	values := make([]any, len(b.row))
	for i, raw := range b.row {
		field := b.fields[i]
		known, ok := b.types.TypeForOID(field.DataTypeOID)
		switch {
		case raw == nil:
		case ok:
			var err error
			if values[i], err = known.Codec.DecodeValue(b.types, field.DataTypeOID, field.Format, raw); err != nil {
				return nil, b.check(err)
			}
		case field.Format == pgx.TextFormatCode:
			values[i] = string(raw)
		default:
			values[i] = slices.Clone(raw)
		}
	}
	return values, nil
}

func (b *bufferedRows) RawValues() [][]byte { return b.row }

func (b *bufferedRows) Conn() *pgx.Conn { return nil }

func (b *bufferedRows) TypeMap() *pgtype.Map { return b.types }

// check closes the rows after an error, as pgx does.
func (b *bufferedRows) check(err error) error {
	if err != nil && b.err == nil {
		b.err = err
		b.Close()
	}
	return err
}
