package router_test

import (
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Values go in and come out as on a plain pool with its search_path set, in every mode.
func TestTypesAreThoseOfPgx(t *testing.T) {
	t.Parallel()
	type point struct{ X, Y int }
	moment := time.Date(2026, 7, 1, 12, 30, 0, 123456000, time.UTC)
	tests := []struct {
		typ   string
		value any
		dest  func() any
	}{
		{"bool", true, func() any { return new(bool) }},
		{"int2", int16(-3), func() any { return new(int16) }},
		{"int4", int32(7), func() any { return new(*int32) }},
		{"int4", nil, func() any { return new(*int32) }},
		{"int8", int64(1) << 40, func() any { return new(int64) }},
		{"float4", float32(1.5), func() any { return new(float32) }},
		{"float8", 2.25, func() any { return new(float64) }},
		{"numeric", pgtype.Numeric{Int: big.NewInt(12345), Exp: -2, Valid: true}, func() any { return new(pgtype.Numeric) }},
		{"text", "it's \\ \"x\" größe", func() any { return new(string) }},
		{"varchar(10)", "short", func() any { return new(pgtype.Text) }},
		{"bytea", []byte{0, 1, 255, '\''}, func() any { return new([]byte) }},
		{"uuid", [16]byte{1, 2, 3}, func() any { return new([16]byte) }},
		{"uuid", "00010203-0405-0607-0809-0a0b0c0d0e0f", func() any { return new(string) }},
		{"timestamptz", moment, func() any { return new(time.Time) }},
		{"timestamp", pgtype.Timestamp{Time: moment, Valid: true}, func() any { return new(pgtype.Timestamp) }},
		{"date", pgtype.Date{Time: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), Valid: true}, func() any { return new(pgtype.Date) }},
		{"interval", pgtype.Interval{Microseconds: 5, Days: 2, Months: 1, Valid: true}, func() any { return new(pgtype.Interval) }},
		{"inet", netip.MustParsePrefix("10.0.0.0/8"), func() any { return new(netip.Prefix) }},
		{"jsonb", `{"a": [1, null]}`, func() any { return new(map[string]any) }},
		{"json", point{1, 2}, func() any { return new(point) }},
		{"int8[]", []int64{1, 2, 3}, func() any { return new([]int64) }},
		{"text[]", []string{"a", `b,"c"`, ""}, func() any { return new([]string) }},
		{"int4[][]", [][]int32{{1, 2}, {3, 4}}, func() any { return new([][]int32) }},
		{"int4range", pgtype.Range[int32]{Lower: 1, Upper: 5, LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}, func() any { return new(pgtype.Range[int32]) }},
		{"point", pgtype.Point{P: pgtype.Vec2{X: 1, Y: 2}, Valid: true}, func() any { return new(pgtype.Point) }},
		{"mood", "good", func() any { return new(string) }},
		{"mood", nil, func() any { return new(*string) }},
		{"place", "(1,2)", func() any { return new(string) }},
		{"small", "3", func() any { return new(string) }},
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{dsn: execMode(mode)})
			for _, schema := range []string{"shard_00008", "shard_00009"} { // the OIDs differ
				b.run(ctx, t, `set search_path = `+schema+`; create type mood as enum ('bad', 'good');
					create type place as (x int, y int); create domain small as int check (value < 10); reset search_path`)
			}
			plain := plainIn(ctx, t, b.dsns[0], mode, "shard_00009")
			for _, test := range tests {
				sql := `select $1::` + test.typ
				for _, s := range []queryer{b.shard(t, 8), b.shard(t, 9)} {
					want, got := test.dest(), test.dest()
					wantErr := plain.QueryRow(ctx, sql, test.value).Scan(want)
					err := s.QueryRow(ctx, sql, test.value).Scan(got)
					if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
						t.Errorf("%s %v: got %v, %v; want %v, %v", test.typ, test.value, got, err, want, wantErr)
					}
					if wantErr != nil && mode == "cache_statement" {
						t.Errorf("%s %v: %v", test.typ, test.value, wantErr)
					}
				}
				wantValues, wantErr := valuesOf(plain.Query(ctx, sql, test.value))
				values, err := valuesOf(b.shard(t, 9).Query(ctx, sql, test.value))
				if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(values, wantValues) {
					t.Errorf("values of %s %v: got %v, %v; want %v, %v", test.typ, test.value, values, err, wantValues, wantErr)
				}
			}
		})
	}
}

func valuesOf(rows pgx.Rows, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
}

// Structs, and a row that scans itself, are filled as on a plain pool.
func TestCollecting(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	type photo struct {
		ID    int64
		Owner int64
		Title *string
	}
	rows, err := b.shard(t, 9).Query(ctx, `select id, owner, title from photos`)
	if err != nil {
		t.Fatal(err)
	}
	photos, err := pgx.CollectRows(rows, pgx.RowToStructByName[photo])
	if err != nil || len(photos) != 1 || photos[0].Owner != 9 || *photos[0].Title != "of shard 9" {
		t.Errorf("%+v, %v", photos, err)
	}
	var self selfScanner
	if err := b.shard(t, 9).QueryRow(ctx, `select id, title from photos`).Scan(&self); err != nil || self.title != "of shard 9" {
		t.Errorf("%+v, %v", self, err)
	}
}

type selfScanner struct {
	id    int64
	title string
}

func (s *selfScanner) ScanRow(rows pgx.Rows) error {
	if rows.Conn() != nil {
		panic("rows with a connection that is not theirs alone")
	}
	return rows.Scan(&s.id, &s.title)
}
