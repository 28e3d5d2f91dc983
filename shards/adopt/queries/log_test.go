package queries_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/queries"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func entries(t *testing.T, log, database string) []queries.Entry {
	t.Helper()
	var found []queries.Entry
	if err := queries.ReadLog(strings.NewReader(log), database, func(e queries.Entry) error {
		found = append(found, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestReadLog(t *testing.T) {
	t.Parallel()
	const stderr = `2026-08-01 10:00:00.000 UTC [101] LOG:  duration: 1.500 ms  statement: select *
	from albums -- LOG:  not a message
	where user_id = 7
2026-08-01 10:00:00.001 UTC [102] LOG:  duration: 0.100 ms  parse <unnamed>: select 1
2026-08-01 10:00:00.001 UTC [102] LOG:  duration: 0.250 ms  execute s1: select $1, $2
2026-08-01 10:00:00.001 UTC [102] DETAIL:  Parameters: $1 = 'it''s', $2 = NULL
2026-08-01 10:00:00.002 UTC [101] ERROR:  division by zero
2026-08-01 10:00:00.002 UTC [101] STATEMENT:  select 1/0
2026-08-01 10:00:00.003 UTC [103] LOG:  statement: begin
2026-08-01 10:00:00.003 UTC [101] LOG:  checkpoint starting: time
2026-08-01 10:00:00.004 UTC [103] LOG:  duration: 2.000 ms
`
	got := entries(t, stderr, "")
	if len(got) != 3 {
		t.Fatalf("got %+v", got)
	}
	byText := map[string]queries.Entry{}
	for _, e := range got {
		byText[e.SQL] = e
	}
	if e := byText["select *\nfrom albums -- LOG:  not a message\nwhere user_id = 7"]; e.Session != "101" || e.Seconds != 0.0015 {
		t.Errorf("got %+v of %+v", e, got)
	}
	if e := byText["select $1, $2"]; e.Session != "102" || e.Parameters["$1"] != "it's" || e.Parameters["$2"] != "NULL" {
		t.Errorf("got %+v of %+v", e, got)
	}
	if e := byText["begin"]; e.Seconds != 0.002 {
		t.Errorf("got %+v of %+v", e, got)
	}

	const csv = `2026-08-01 10:00:00.000 UTC,"app","photos",101,"127.0.0.1:1",688c.65,1,"SELECT",2026-08-01 10:00:00 UTC,3/1,0,LOG,00000,"duration: 1.500 ms  statement: select ""id""
from users",,,,,,,,,"psql","client backend",,0
2026-08-01 10:00:00.000 UTC,"app","other",102,"127.0.0.1:1",688c.66,1,"SELECT",2026-08-01 10:00:00 UTC,3/1,0,LOG,00000,"duration: 1.500 ms  statement: select 2",,,,,,,,,"psql","client backend",,0
2026-08-01 10:00:00.000 UTC,"app","photos",101,"127.0.0.1:1",688c.65,2,"SELECT",2026-08-01 10:00:00 UTC,3/1,0,LOG,00000,"duration: 0.5 ms  execute <unnamed>: select $1","parameters: $1 = '5'",,,,,,,,"psql","client backend",,0
`
	got = entries(t, csv, "photos")
	if len(got) != 2 || got[0].SQL != "select \"id\"\nfrom users" || got[1].Parameters["$1"] != "5" || got[1].Session != "688c.65" {
		t.Errorf("got %+v", got)
	}
	const jsonlog = `{"timestamp":"2026-08-01 10:00:00.000 UTC","user":"app","dbname":"photos","pid":101,"session_id":"688c.65","error_severity":"LOG","message":"duration: 1.500 ms  statement: select \"id\"\nfrom users"}
{"timestamp":"2026-08-01 10:00:00.000 UTC","user":"app","dbname":"other","pid":102,"session_id":"688c.66","error_severity":"LOG","message":"duration: 1.500 ms  statement: select 2"}
{"timestamp":"2026-08-01 10:00:00.000 UTC","user":"app","dbname":"photos","pid":101,"session_id":"688c.65","error_severity":"ERROR","message":"division by zero","statement":"select 1/0"}
{"timestamp":"2026-08-01 10:00:00.000 UTC","user":"app","dbname":"photos","pid":101,"session_id":"688c.65","error_severity":"LOG","message":"duration: 0.5 ms  execute <unnamed>: select $1","detail":"parameters: $1 = '5'"}
`
	got = entries(t, jsonlog, "photos")
	if len(got) != 2 || got[0].SQL != "select \"id\"\nfrom users" || got[1].Parameters["$1"] != "5" || got[1].Session != "688c.65" {
		t.Errorf("got %+v", got)
	}
	if err := queries.ReadLog(strings.NewReader(jsonlog+"{broken"), "", func(queries.Entry) error { return nil }); err == nil {
		t.Error("a broken line is read")
	}
	if got = entries(t, "", ""); len(got) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	stopped := errors.New("stopped")
	if err := queries.ReadLog(strings.NewReader(stderr), "", func(queries.Entry) error { return stopped }); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

// TestTransactions holds that a transaction with several keys is found, one with one key is not, and neither shows a value.
func TestTransactions(t *testing.T) {
	t.Parallel()
	c := queries.NewCollector(newSchema(t))
	for i, sql := range []string{
		"begin", "update posts set text = 'one' where user_id = 5 and number = 1", "update posts set text = 'two' where user_id = 6 and number = 2", "commit",
		"begin", "update posts set text = 'three' where user_id = 7 and number = 3", "update posts set text = 'four' where user_id = 7 and number = 4", "commit",
		"start transaction", "select * from posts where user_id = 8", "rollback to savepoint a", "select * from albums where user_id = 9", "rollback",
		"select * from posts where user_id = 10", "select * from posts where user_id = 11",
	} {
		if err := c.Add(queries.Entry{Session: "1", SQL: sql, Seconds: float64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []queries.Entry{
		{SQL: "begin"},
		{SQL: "select * from posts where user_id = $1", Parameters: map[string]string{"$1": "12"}},
		{SQL: "select * from posts where user_id = $1", Parameters: map[string]string{"$1": "13"}},
		{SQL: "end"},
	} {
		e.Session = "2"
		if err := c.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]queries.Statement{}
	for _, s := range c.Statements() {
		if strings.HasPrefix(s.SQL, "begin;") {
			found[s.SQL] = s
		}
		if strings.ContainsAny(s.SQL, "5678") || strings.Contains(s.SQL, "one") {
			t.Errorf("a value is in %s", s.SQL)
		}
	}
	for text, want := range map[string]float64{
		"begin; update posts set text = $1 where user_id = $2 and number = $3; commit":                                            1 + 2,
		"begin; select * from posts where user_id = $1; rollback to savepoint a; select * from albums where user_id = $1; commit": 9 + 10 + 11,
		"begin; select * from posts where user_id = $1; commit":                                                                   0,
	} {
		if s, ok := found[text]; !ok || s.Class != queries.CrossShard || s.Calls != 1 || s.Seconds != want {
			t.Errorf("%s: got %+v", text, s)
		}
	}
	if len(found) != 3 {
		t.Errorf("got %+v", found)
	}
}

// TestServersOwnLog reads what a server has logged itself, and its statistics.
func TestServersOwnLog(t *testing.T) {
	t.Parallel()
	server := shardtest.OwnServer(t)
	dsn, err := server.CreateDatabase(t.Context(), "photos")
	if err != nil {
		t.Fatal(err)
	}
	host := shards.Host{Name: "photos", DSN: dsn, Weight: 1}
	statistics := func() (all []queries.Statement, hidden int64, err error) {
		read(t, host, func(ctx context.Context, tx pgx.Tx) error {
			all, hidden, err = queries.ReadStatistics(ctx, tx)
			_, after := tx.Exec(ctx, "select 1")
			return after
		})
		return all, hidden, err
	}
	exec(t, dsn, service)
	if _, _, err := statistics(); !errors.Is(err, queries.ErrNoStatistics) {
		t.Errorf("without the extension: %v", err)
	}
	for _, setting := range []string{
		"shared_preload_libraries = pg_stat_statements", "log_min_duration_statement = 0",
	} {
		exec(t, dsn, "alter system set "+setting)
	}
	exec(t, dsn, "create extension pg_stat_statements schema public")
	if _, _, err := statistics(); !errors.Is(err, queries.ErrNoStatistics) {
		t.Errorf("without the library: %v", err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, dsn, "select pg_stat_statements_reset()")

	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for n := range 3 {
		if _, err := conn.Exec(t.Context(), "select * from posts where user_id = $1", n); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), fmt.Sprintf("select *\n\tfrom posts where text = 'it''s %d'", n)); err != nil {
			t.Fatal(err)
		}
	}
	all, hidden, err := statistics()
	if err != nil || hidden != 0 {
		t.Fatalf("%v, %d hidden", err, hidden)
	}
	calls := map[string]int64{}
	for _, s := range all {
		calls[s.SQL] = s.Calls
	}
	if calls["select * from posts where user_id = $1"] != 3 || calls["select *\n\tfrom posts where text = $1"] != 3 {
		t.Errorf("got %v", calls)
	}

	exec(t, dsn, "create role reader login")
	var seen []queries.Statement
	var concealed int64
	read(t, host, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local role reader"); err != nil {
			return err
		}
		some, hidden, err := queries.ReadStatistics(ctx, tx)
		seen, concealed = some, hidden
		return err
	})
	if concealed == 0 || slices.ContainsFunc(seen, func(s queries.Statement) bool { return strings.Contains(s.SQL, "from posts") }) {
		t.Errorf("a role without rights sees %+v, %d are hidden", seen, concealed)
	}

	for _, statement := range []struct {
		sql  string
		args []any
		want map[string]string
	}{
		{"select * from posts where user_id = $1 and text = $2", []any{int64(7), "it's"}, map[string]string{"$1": "7", "$2": "it's"}},
		{"select *\n\tfrom posts where text = 'it''s'", nil, nil},
	} {
		if _, err := conn.Exec(t.Context(), statement.sql, statement.args...); err != nil {
			t.Fatal(err)
		}
		var last queries.Entry
		for deadline := time.Now().Add(time.Minute); last.SQL != statement.sql && time.Now().Before(deadline); {
			for _, e := range entries(t, server.Log(t.Context()), "") { // the end of the log
				last = e
			}
		}
		if last.SQL != statement.sql || !maps.Equal(last.Parameters, statement.want) || last.Seconds <= 0 || last.Session == "" {
			t.Errorf("got %+v, expected %+v", last, statement)
		}
	}
}
