package sqldb

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// The type modifier includes the four bytes of the length.
const modifierHeader = 4

func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	if r.types[i] == nil { // such as an enum, whose OID differs between shards
		return strconv.FormatUint(uint64(r.fields[i].DataTypeOID), 10)
	}
	return strings.ToUpper(r.types[i].Name)
}

func (r *rows) ColumnTypeLength(i int) (length int64, ok bool) {
	switch modifier := r.fields[i].TypeModifier; r.fields[i].DataTypeOID {
	case pgtype.TextOID, pgtype.ByteaOID:
		return math.MaxInt64, true
	case pgtype.VarcharOID, pgtype.BPCharOID:
		if modifier < modifierHeader {
			return math.MaxInt64, true
		}
		return int64(modifier - modifierHeader), true
	}
	return 0, false
}

// ColumnTypePrecisionScale returns the precision 65535 for a numeric without one, as pgx's stdlib does. GORM needs it to see that
// the column lacks the precision of its model.
func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if r.fields[i].DataTypeOID != pgtype.NumericOID {
		return 0, 0, false
	}
	modifier := r.fields[i].TypeModifier - modifierHeader
	return int64(modifier>>16) & 0xffff, int64(modifier) & 0xffff, true
}

func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	switch r.fields[i].DataTypeOID {
	case pgtype.BoolOID:
		return reflect.TypeFor[bool]()
	case pgtype.Int2OID:
		return reflect.TypeFor[int16]()
	case pgtype.Int4OID:
		return reflect.TypeFor[int32]()
	case pgtype.Int8OID:
		return reflect.TypeFor[int64]()
	case pgtype.Float4OID:
		return reflect.TypeFor[float32]()
	case pgtype.Float8OID, pgtype.NumericOID:
		return reflect.TypeFor[float64]()
	case pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID:
		return reflect.TypeFor[time.Time]()
	case pgtype.ByteaOID:
		return reflect.TypeFor[[]byte]()
	}
	return reflect.TypeFor[string]()
}
