package sqldb_test

import (
	"context"
	"database/sql"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// openStdlib opens a shard with pgx's stdlib, by a search_path in the DSN.
func (b *testBundle) openStdlib(t *testing.T, n int) *sql.DB {
	t.Helper()
	shard := b.shard(t, n)
	cfg, err := pgx.ParseConfig(shard.Host().ConnString())
	if err != nil {
		t.Fatal("bad DSN")
	}
	cfg.RuntimeParams["search_path"] = shard.Schema() + ", pg_temp"
	db := stdlib.OpenDB(*cfg)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Values go in and come out as they do with pgx's stdlib, in every mode.
func TestTypesAreThoseOfStdlib(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, 7, 1, 12, 30, 0, 123456000, time.UTC)
	tests := []struct {
		typ   string
		value any
	}{
		{"bool", true},
		{"bool", nil},
		{"int2", int16(-3)},
		{"int4", 7},
		{"int8", int64(math.MaxInt64)},
		{"int8", sql.NullInt64{}},
		{"oid", 4000000000},
		{"xid", "7"},
		{"float4", float32(0.1)},
		{"float8", 0.1},
		{"float8", math.Inf(1)},
		{"numeric", "12345.67"},
		{"numeric(6, 2)", 1.5},
		{"text", "it's \\ \"x\" größe"},
		{"text", sql.NullString{String: "x", Valid: true}},
		{"varchar(10)", "short"},
		{"char(10)", "short"},
		{"bytea", []byte{0, 1, 255, '\''}},
		{"bytea", []byte{}},
		{"uuid", "00010203-0405-0607-0809-0a0b0c0d0e0f"},
		{"timestamptz", moment},
		{"timestamptz", pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}},
		{"timestamp", moment},
		{"date", moment},
		{"date", pgtype.Date{InfinityModifier: pgtype.NegativeInfinity, Valid: true}},
		{"interval", "1 mon 2 days"},
		{"inet", "10.0.0.0/8"},
		{"json", `{"a": [1, null]}`},
		{"jsonb", `{"a": [1, null]}`},
		{"xml", `<a/>`},
		{"int8[]", []int64{1, 2, 3}},
		{"text[]", []string{"a", `b,"c"`, ""}},
		{"visibility", "public"},
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, mode, 2)
			db, plain := b.open(t, 10), b.openStdlib(t, 10)
			for _, test := range tests {
				query := `select $1::` + test.typ
				want, wantColumn := valueOf(ctx, t, plain, query, test.value)
				got, column := valueOf(ctx, t, db, query, test.value)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s %v: got %T %v, want %T %v", test.typ, test.value, got, got, want, want)
				}
				if column != wantColumn {
					t.Errorf("%s: got %+v, want %+v", test.typ, column, wantColumn)
				}
			}
		})
	}
}

// column is what database/sql knows of a column.
type column struct {
	name, database   string
	scan             reflect.Type
	length           int64
	precision, scale int64
}

func valueOf(ctx context.Context, t *testing.T, db *sql.DB, query string, arg any) (value any, about column) {
	t.Helper()
	rows, err := db.QueryContext(ctx, query, arg)
	if err != nil {
		t.Errorf("%s, %v: %v", query, arg, err)
		return nil, about
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil || len(types) != 1 || !rows.Next() {
		t.Errorf("%s: %d columns, or no row: %v, %v", query, len(types), err, rows.Err())
		return nil, about
	}
	if err := rows.Scan(&value); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	if rows.Next() || rows.Err() != nil {
		t.Errorf("%s: another row, or %v", query, rows.Err())
	}
	about = column{name: types[0].Name(), database: types[0].DatabaseTypeName(), scan: types[0].ScanType()}
	about.length, _ = types[0].Length()
	about.precision, about.scale, _ = types[0].DecimalSize()
	return value, about
}

// There are columns to ask for where there are no rows, and none where there is nothing to return.
func TestColumnsWithoutRows(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		b, ctx := setup(t, mode, 1)
		db := b.open(t, 10)
		for query, want := range map[string]int{`select id, owner from photos where id = $1`: 2, `delete from photos where id = $1`: 0} {
			rows, err := db.QueryContext(ctx, query, 2)
			if err != nil {
				t.Fatal(err)
			}
			var other int // on the connection that the rows have given back
			if err := db.QueryRowContext(ctx, `select 1 as other`).Scan(&other); err != nil {
				t.Error(err)
			}
			if names, err := rows.Columns(); err != nil || len(names) != want || slices.Contains(names, "other") {
				t.Errorf("%s, %s: columns %q, %v", mode, query, names, err)
			}
			if rows.Next() || rows.Err() != nil {
				t.Errorf("%s, %s: a row, or %v", mode, query, rows.Err())
			}
		}
		b.isFree(ctx, t)
	}
}

// What pgx takes as an argument is taken here too: its options, and types of its own.
func TestArgumentsOfPgx(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, modes[0], 1)
	db := b.open(t, 10)
	var owner int64
	if err := db.QueryRowContext(ctx, `select owner from photos where id = @id`, pgx.NamedArgs{"id": 1}).Scan(&owner); err != nil || owner != 10 {
		t.Errorf("%d, %v", owner, err)
	}
	if err := db.QueryRowContext(ctx, `select owner from photos where id = any($1)`, []int64{1, 2}).Scan(&owner); err != nil || owner != 10 {
		t.Errorf("%d, %v", owner, err)
	}
	if err := db.QueryRowContext(ctx, `select owner from photos where id = $1`, sql.Named("id", 1)).Scan(&owner); err == nil {
		t.Error("a name that Postgres does not know was dropped in silence")
	}
}
