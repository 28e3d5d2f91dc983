package checks_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	os.Exit(leak.Check(shardtest.Run(m)))
}

const schema = "shard_00001"

// session is the one connection of a test, so that checks see uncommitted changes.
type session struct {
	*testing.T
	*pgx.Conn
}

func connect(t *testing.T, dsn string, params ...string) session {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(params); i += 2 {
		cfg.RuntimeParams[params[i]] = params[i+1]
	}
	return connectConfig(t, cfg)
}

func connectConfig(t *testing.T, cfg *pgx.ConnConfig) session {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return session{t, conn}
}

func (s session) exec(statements string) {
	s.Helper()
	if _, err := s.PgConn().Exec(s.Context(), statements).ReadAll(); err != nil {
		s.Fatalf("%s: %v", statements, err)
	}
}

func (s session) text(query string) (text string) {
	s.Helper()
	if err := s.QueryRow(s.Context(), query).Scan(&text); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	return text
}

func (s session) number(query string) (number int) {
	s.Helper()
	if err := s.QueryRow(s.Context(), query).Scan(&number); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	return number
}

// shard makes a shard of one table and one function.
func (s session) shard() {
	s.exec(`create schema shard_00001; create table shard_00001.photos (id bigint primary key, title text);
		create function shard_00001.f() returns int language plpgsql as 'begin return 1; end'`)
}

// onSource returns the results on a source.
func (s session) onSource(offline bool) *checks.Shard {
	s.Helper()
	shard, err := checks.OnSource(s.Context(), s.Conn, schema, offline)
	if err != nil {
		s.Fatal(err)
	}
	return shard
}

// onTarget returns the results on a target.
func (s session) onTarget(shard *checks.Shard, offline bool) checks.Found {
	s.Helper()
	found, err := shard.OnTarget(s.Context(), s.Conn, checks.Way{Offline: offline})
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// lines returns all results, sorted: notes begin with "note: ".
func lines(all ...checks.Found) []string {
	texts := []string{}
	for _, f := range all {
		texts = append(texts, f.Problems...)
		for _, note := range f.Notes {
			texts = append(texts, "note: "+note)
		}
	}
	slices.Sort(texts)
	return texts
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	want = slices.Clone(want)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n\t%s\nexpected\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// matches checks that one line matches a pattern, or that there is none if the pattern is empty.
func matches(t *testing.T, got []string, pattern string) {
	t.Helper()
	if pattern == "" {
		equal(t, "found", got)
	} else if len(got) != 1 || !regexp.MustCompile(pattern).MatchString(got[0]) {
		t.Errorf("got %q, expected %s", got, pattern)
	}
}

// later executes a statement once the test has ended.
func later(t *testing.T, dsn, statement string) {
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(context.Background(), statement); err != nil {
		t.Error(err)
	}
}
