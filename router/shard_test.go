package router_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// DBTX is what sqlc generates for pgx/v5, with :batch and :copyfrom queries in it.
type DBTX interface {
	Exec(context.Context, string, ...interface{}) (pgconn.CommandTag, error)
	Query(context.Context, string, ...interface{}) (pgx.Rows, error)
	QueryRow(context.Context, string, ...interface{}) pgx.Row
	CopyFrom(ctx context.Context, tableName pgx.Identifier, columnNames []string, rowSrc pgx.CopyFromSource) (int64, error)
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

// beginner is what code asks for that begins transactions on whatever it is given.
type beginner interface {
	Begin(context.Context) (pgx.Tx, error)
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}

var (
	_ DBTX     = router.Shard{}
	_ beginner = router.Shard{}
)

func TestExec(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{dsn: execMode(mode)})
			s := b.shard(t, 9)
			tests := []struct {
				name string
				sql  string
				args []any
				want string // tag or error
			}{
				{"one statement", `insert into photos values (2, 9, 'two')`, nil, "INSERT 0 1"},
				{"several statements", `insert into photos values (3, 9, 'three'); update photos set owner = 9`, nil, "UPDATE 3"},
				{"no statement", ``, nil, ""},
				{"only a comment", `-- nothing`, nil, ""},
				{"with arguments", `insert into photos values ($1, $2, $3)`, []any{4, 9, "four"}, "INSERT 0 1"},
				{"named arguments", `insert into photos values (@id, @owner, @title)`, []any{pgx.NamedArgs{"id": 5, "owner": 9, "title": "it's"}}, "INSERT 0 1"},
				{"named arguments, none used", `delete from photos where id = 5`, []any{pgx.NamedArgs{"id": 5}}, "DELETE 1"},
				{"exec mode", `delete from photos where id = $1`, []any{pgx.QueryExecModeExec, 4}, "DELETE 1"},
				{"cache_statement mode", `delete from photos where id = $1`, []any{pgx.QueryExecModeCacheStatement, 3}, "DELETE 1"},
				{"simple_protocol mode", `delete from photos where id = $1`, []any{pgx.QueryExecModeSimpleProtocol, 2}, "shard 9 (shard_00009 on pg-a): pgx.QueryExecMode: simple protocol; expected cache_statement"},
				{"cache_describe mode", `delete from photos where id = $1`, []any{pgx.QueryExecModeCacheDescribe, 1}, "shard 9 (shard_00009 on pg-a): pgx.QueryExecMode: cache describe; expected cache_statement"},
				{"a table of another schema", `delete from shard_00008.photos`, nil, "DELETE 1"},
				{"a failing statement", `insert into photos values (1, 9, 'again')`, nil, "SQLSTATE 23505"},
				{"a failing statement with arguments", `insert into photos values ($1, 9, 'again')`, []any{1}, "SQLSTATE 23505"},
				{"a whole transaction", `begin; delete from photos; rollback`, nil, "ROLLBACK"},
				{"more than a transaction", `select 1; rollback; delete from photos where owner = 9`, nil, "has ended the transaction"},
				{"set transaction", `set transaction read only; delete from photos`, nil, "SQLSTATE 25006"},
				{"vacuum", `vacuum photos`, nil, "SQLSTATE 25001"},
			}
			for _, test := range tests { // in this order
				tag, err := s.Exec(ctx, test.sql, test.args...)
				if err != nil && !strings.Contains(err.Error(), test.want) || err == nil && tag.String() != test.want {
					t.Errorf("%s: got %q, %v; want %q", test.name, tag, err, test.want)
				}
			}
			if tag, err := s.Exec(ctx, `select * from photos where owner = 9`); err != nil || tag.RowsAffected() != 2 {
				t.Errorf("left: %s, %v", tag, err)
			}
		})
	}
}

func TestExecStringIsOneTransaction(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	s := b.shard(t, 1)
	_, err := s.Exec(ctx, `update photos set title = 'changed'; select 1/0`)
	if pgErr := new(pgconn.PgError); !errors.As(err, &pgErr) || pgErr.Code != "22012" {
		t.Errorf("got %v", err)
	}
	var title string
	if err := s.QueryRow(ctx, `select title from photos`).Scan(&title); err != nil || title != "of shard 1" {
		t.Errorf("title %q, %v", title, err)
	}
}

// A string is taken apart as the server reads it: a backslash may escape a quote, and an open comment is an error.
func TestExecStringAsTheServerReadsIt(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{dsn: map[string]string{"standard_conforming_strings": "off"}})
	s := b.shard(t, 1)
	if tag, err := s.Exec(ctx, `select '\'; select 1; --'; delete from photos where title = '\''; update photos set title = 'a\'; b'`); err != nil || tag.String() != "UPDATE 1" {
		t.Errorf("got %s, %v", tag, err)
	}
	_, err := s.Exec(ctx, `delete from photos; /* and so on`)
	if pgErr := new(pgconn.PgError); !errors.As(err, &pgErr) || pgErr.Code != "42601" {
		t.Errorf("open comment: got %v", err)
	}
	var title string
	if err := s.QueryRow(ctx, `select title from photos`).Scan(&title); err != nil || title != `a'; b` {
		t.Errorf("title %q, %v", title, err)
	}
}

func TestErrorsTellShardAndPosition(t *testing.T) {
	t.Parallel()
	// The extra schema makes the text before the caller's longer in bytes than in characters.
	b, ctx := setup(t, options{searchPath: []string{"größe'x"}})
	s := b.shard(t, 12)
	const sql = `select 'ü' from photo`
	calls := map[string]func() error{
		"Exec":                      func() error { _, err := s.Exec(ctx, sql); return err },
		"Exec with arguments":       func() error { _, err := s.Exec(ctx, sql+` where id = $1`, 1); return err },
		"Exec in the second string": func() error { _, err := s.Exec(ctx, `;`+sql[1:]+`; `+sql); return err },
		"Query": func() error {
			rows, err := s.Query(ctx, sql)
			rows.Close()
			return err
		},
		"QueryRow": func() error { return s.QueryRow(ctx, sql).Scan(nil) },
	}
	for name, call := range calls {
		err := call()
		var shardErr *shards.ShardError
		var pgErr *pgconn.PgError
		if !errors.As(err, &shardErr) || !errors.As(err, &pgErr) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if shardErr.Shard != 12 || shardErr.Schema != "shard_00012" || shardErr.Host != "pg-a" {
			t.Errorf("%s: error about %+v", name, shardErr)
		}
		if name == "Exec in the second string" {
			if pgErr.Code != "42601" || pgErr.Position != 2 {
				t.Errorf("%s: %v at %d", name, pgErr, pgErr.Position)
			}
		} else if pgErr.Code != "42P01" || pgErr.Position != 17 {
			t.Errorf("%s: %v at %d", name, pgErr, pgErr.Position)
		}
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{conns: 1, dsn: execMode(mode)})
			s := b.shard(t, 9)
			rows, err := s.Query(ctx, `select n, 'x' || n as label from generate_series(1, $1) n`, 3)
			if err != nil {
				t.Fatal(err)
			}
			if fields := rows.FieldDescriptions(); len(fields) != 2 || fields[1].Name != "label" {
				t.Errorf("fields %v", fields)
			}
			if rows.Conn() != nil || rows.TypeMap() == nil {
				t.Error("a connection that may be others' too, or no types")
			}
			var labels []string
			for rows.Next() {
				values, err := rows.Values()
				if err != nil || len(rows.RawValues()) != 2 {
					t.Fatal(values, err)
				}
				labels = append(labels, values[1].(string))
			}
			if rows.Err() != nil || rows.CommandTag().String() != "SELECT 3" || !slices.Equal(labels, []string{"x1", "x2", "x3"}) {
				t.Errorf("%v, %s, %v", labels, rows.CommandTag(), rows.Err())
			}

			// There is one connection only: whatever keeps it makes the next call wait for ever.
			rows, err = s.Query(ctx, `select * from generate_series(1, 100000)`)
			if err != nil || !rows.Next() {
				t.Fatal(err)
			}
			rows.Close()
			rows.Close()
			if rows.Err() != nil || rows.Next() {
				t.Error("abandoned rows:", rows.Err())
			}
			if rows, err = s.Query(ctx, `select 10/(5-n) from generate_series(1, 9) n`); err == nil {
				for rows.Next() {
				}
				err = rows.Err()
			}
			if pgErr := new(pgconn.PgError); !errors.As(err, &pgErr) || pgErr.Code != "22012" {
				t.Errorf("error in mid rows: %v", err)
			}
			rows, err = s.Query(ctx, `select title from photos`)
			if err != nil || !rows.Next() {
				t.Fatal(err)
			}
			if err := rows.Scan(new(int)); !errors.As(err, new(pgx.ScanArgError)) || !same(rows.Err(), err) {
				t.Errorf("a wrong destination: %v, %v", err, rows.Err())
			}
			if rows, err = s.Query(ctx, ``); err == nil {
				rows.Close()
				err = rows.Err()
			}
			if err != nil {
				t.Errorf("an empty query: %v", err)
			}
			rows, _ = s.Query(ctx, `select $1::int, $2::int`, 1)
			rows.Close()
			if rows.Err() == nil || rows.Scan(new(int)) == nil || rows.FieldDescriptions() != nil {
				t.Error("one argument of two was enough")
			}
			b.isFree(ctx, t)
		})
	}
}

func TestQueryRow(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 9)
	var owner int64
	if err := s.QueryRow(ctx, `select owner from photos where id = $1`, 2).Scan(&owner); !same(err, pgx.ErrNoRows) {
		t.Errorf("no row: %v", err)
	}
	if err := s.QueryRow(ctx, `select n from generate_series(7, 1000) n`).Scan(&owner); err != nil || owner != 7 {
		t.Errorf("many rows: %d, %v", owner, err)
	}
	var raw pgtype.DriverBytes
	if err := s.QueryRow(ctx, `select '\x00'::bytea`).Scan(&raw); err == nil {
		t.Error("bytes of a closed row were handed out")
	}
	if err := s.QueryRow(ctx, `select $1::int`, "no number").Scan(&owner); err == nil {
		t.Error("an argument of the wrong type went through")
	}
	func() {
		defer func() { _ = recover() }()
		_ = s.QueryRow(ctx, `select 1`).Scan(panicking{})
	}()
	b.isFree(ctx, t)
}

type panicking struct{}

func (panicking) ScanRow(pgx.Rows) error { panic("in a test") }

func TestQueryOptions(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	s := b.shard(t, 9)
	const sql = `select owner from photos where id = $1`
	format := func(args ...any) int16 {
		rows, err := s.Query(ctx, sql, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		return rows.FieldDescriptions()[0].Format
	}
	if got := format(1); got != pgx.BinaryFormatCode {
		t.Errorf("by default format %d", got)
	}
	if got := format(pgx.QueryResultFormats{pgx.TextFormatCode}, 1); got != pgx.TextFormatCode {
		t.Errorf("by position format %d", got)
	}
	if got := format(pgx.QueryResultFormatsByOID{pgtype.Int8OID: pgx.TextFormatCode}, 1); got != pgx.TextFormatCode {
		t.Errorf("by OID format %d", got)
	}
	var owner int64
	if err := s.QueryRow(ctx, `select owner from photos where id = @id`, pgx.NamedArgs{"id": 1}).Scan(&owner); err != nil || owner != 9 {
		t.Errorf("named: %d, %v", owner, err)
	}
	if err := s.QueryRow(ctx, sql, pgx.QueryExecModeSimpleProtocol, 1).Scan(&owner); err == nil || !strings.Contains(err.Error(), "expected cache_statement") {
		t.Errorf("simple: %v", err)
	}
	if err := s.QueryRow(ctx, sql, pgx.StrictNamedArgs{"x": 1}, 1).Scan(&owner); err == nil || !strings.Contains(err.Error(), "rewrite") {
		t.Errorf("rewriter: %v", err)
	}
}

// isFree fails the test if a connection was not given back.
func (b *testBundle) isFree(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // as in allFree
	defer cancel()
	if err := b.Ping(ctx); err != nil {
		t.Errorf("a connection was not given back: %v", err)
	}
}
