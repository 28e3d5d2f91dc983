package rows_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

const types = `
	create type photos.size as enum ('small', 'large');
	create type photos.pair as (a int, b text);
	create domain photos.title as varchar check (length(value) < 100);`

// hosts returns two hosts, each with a schema of the same name and the same types, with other OIDs.
func hosts(t *testing.T) (conns [2]*pgx.Conn) {
	t.Helper()
	for i, host := range shardtest.Hosts(t, 2) {
		conn, err := pgx.Connect(t.Context(), host.ConnString())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) }) // it has done all
		conns[i] = conn
	}
	exec(t, conns[1], "create type public.before as enum ()")
	for _, conn := range conns {
		exec(t, conn, "create schema photos; "+types)
	}
	return conns
}

func exec(t *testing.T, conn *pgx.Conn, script string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), script, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
}

func sums(t *testing.T, conn *pgx.Conn) []rows.Sum {
	t.Helper()
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }() // it has written nothing
	all, err := rows.Sums(t.Context(), tx, "photos", "photos", rows.All, "")
	if err != nil {
		t.Fatal(err)
	}
	paced, err := rows.Paced(t.Context(), conn, "photos", "photos", rows.All)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(paced, all) {
		t.Errorf("paced %v, at once %v", paced, all)
	}
	return all
}

// Paced returns the same sums as Sums for a table of many pages, some of them empty, and for one with a child table.
func TestPaced(t *testing.T) {
	t.Parallel()
	conn := hosts(t)[0]
	exec(t, conn, `create table photos.a (id int primary key, title text); create table photos.b () inherits (photos.a); create table photos.c (n int);
		insert into photos.a select n, repeat('x', n % 500) from generate_series(1, 20000) n; delete from photos.a where id between 5000 and 9000 or id > 19000;
		insert into photos.b values (-1, 'below')`)
	all := sums(t, conn)
	if len(all) != 3 || all[0].Rows != 14999 || all[1].Rows != 1 || all[2].Rows != 0 {
		t.Errorf("got %v", all)
	}
}

// Two copies have the same sums exactly if the bytes of their rows are the same, in any order.
func TestSums(t *testing.T) {
	t.Parallel()
	tests := []struct{ columns, one, other string }{
		{"a smallint", "(1)", "(2)"},
		{"a int", "(1)", "(257)"},
		{"a bigint", "(1)", "(4294967296)"},
		{"a text", "('a')", "('a ')"},
		{"a text", "('')", "(null)"},
		{"a text", "('null')", "(null)"},
		{"a varchar", "('a')", "('b')"},
		{"a character(3)", "('a')", "('b')"},
		{"a bpchar", "('a')", "('a ')"},
		{`a "char"`, "('a')", "('b')"},
		{"a name", "('a')", "('b')"},
		{"a boolean", "(true)", "(false)"},
		{"a numeric", "(1.0)", "(1.00)"},
		{"a float8", "('0')", "('-0')"},
		{"a real", "('1')", "('1.0000001')"},
		{"a json", `('{"a":1}')`, `('{"a": 1}')`},
		{"a jsonb", `('{"a":1.0}')`, `('{"a":1.00}')`},
		{"a date", "('2026-01-01')", "('2026-01-02')"},
		{"a date", "('infinity')", "('-infinity')"},
		{"a time", "('12:00')", "('12:00:00.000001')"},
		{"a timetz", "('12:00+00')", "('13:00+01')"},
		{"a timestamp", "('2026-01-01')", "('2026-01-01 00:00:00.000001')"},
		{"a timestamptz", "('2026-01-01')", "('2026-01-01 00:00:00.000001')"},
		{"a interval", "('1 day')", "('24 hours')"},
		{"a uuid", "('00000000-0000-0000-0000-000000000001')", "('00000000-0000-0000-0000-000000000100')"},
		{"a bytea", `('\x00')`, `('\x0000')`},
		{"a inet", "('10.0.0.1')", "('10.0.0.1/31')"},
		{"a int[]", "('{1,2}')", "('[0:1]={1,2}')"},
		{"a int4range", "('[1,2)')", "('empty')"},
		{"a tsvector", "('a:1')", "('a:2')"},
		{"a photos.size", "('small')", "('large')"},
		{"a photos.pair", "(row(1, null))", "(row(1, ''))"},
		{"a photos.title", "('a')", "('a ')"},
		{"a int, b int", "(1, 2)", "(2, 1)"},
		{"a int, b int", "(1, null)", "(null, 1)"},
		{"a int, b int", "(1, 2), (3, 4)", "(1, 4), (3, 2)"},
		{"a timestamptz, b date", "('2026-01-01', '2026-01-01'), ('2026-01-02', '2026-01-02')", "('2026-01-01', '2026-01-02'), ('2026-01-02', '2026-01-01')"},
		{"a text, b jsonb, c text", "('a', '1', 'b'), ('c', '2', 'd')", "('a', '2', 'b'), ('c', '1', 'd')"},
		{`"kiloshard_row" int, "a ""b" text`, "(1, 'a')", "(1, 'b')"},
	}
	conns := hosts(t)
	for i, test := range tests {
		table := fmt.Sprintf("photos.t_%02d", i)
		for _, conn := range conns {
			exec(t, conn, fmt.Sprintf("create table %s (gone int, %s); alter table %[1]s drop column gone", table, test.columns))
		}
		backwards := strings.Split(strings.TrimPrefix(strings.TrimSuffix(test.one, ")"), "("), "), (")
		slices.Reverse(backwards)
		exec(t, conns[0], "insert into "+table+" values "+test.one)
		exec(t, conns[1], "insert into "+table+" values ("+strings.Join(backwards, "), (")+")")
	}
	here, there := sums(t, conns[0]), sums(t, conns[1])
	for i, test := range tests {
		if here[i] != there[i] {
			t.Errorf("%s: %v and %v of %s, expected the same", test.columns, here[i], there[i], test.one)
		}
		exec(t, conns[1], fmt.Sprintf("truncate photos.t_%02d; insert into photos.t_%02[1]d values %[2]s", i, test.other))
	}
	there = sums(t, conns[1])
	for i, test := range tests {
		if here[i] == there[i] {
			t.Errorf("%s: %v of %s and of %s, expected others", test.columns, here[i], test.one, test.other)
		}
	}
}

// A table without columns can have rows.
func TestSumsWithoutColumns(t *testing.T) {
	t.Parallel()
	conns := hosts(t)
	for _, conn := range conns {
		exec(t, conn, "create table photos.t (); insert into photos.t select from generate_series(1, 5)")
	}
	if here, there := sums(t, conns[0]), sums(t, conns[1]); here[0].Rows != 5 || !slices.Equal(here, there) {
		t.Errorf("%v and %v, expected 5 rows in both", here, there)
	}
}

// Unchanged compares rows in the columns that both copies have, also of types with other OIDs.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	conns := hosts(t)
	for _, conn := range conns {
		exec(t, conn, "create table photos.t (id int, size photos.size, gone text); insert into photos.t select n, 'small', n from generate_series(1, 1000) n")
	}
	var since string
	if err := conns[1].QueryRow(t.Context(), "select pg_current_snapshot()::text").Scan(&since); err != nil {
		t.Fatal(err)
	}
	exec(t, conns[1], "alter table photos.t drop column gone; alter table photos.t add column more int default 7; update photos.t set id = -1 where id = 9; delete from photos.t where id = 10; insert into photos.t values (-2)")
	compare := func() (differences []string) {
		err := rows.Unchanged(t.Context(), conns[0], "photos", conns[1], "photos", since, func(table string, unknown int64) {
			differences = append(differences, fmt.Sprintf("%s %d", table, unknown))
		})
		if err != nil {
			t.Fatal(err)
		}
		return differences
	}
	if got := compare(); len(got) > 0 {
		t.Errorf("got %q, expected no difference", got)
	}
	exec(t, conns[0], "update photos.t set size = 'large' where id < 3")
	if got := compare(); !slices.Equal(got, []string{"t 2"}) {
		t.Errorf("got %q, expected 2 rows", got)
	}
}
