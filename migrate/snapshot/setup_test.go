package snapshot_test

import (
	"context"
	"os"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// migrated returns a map of 16 shards, some of which have been through a migration of the given text.
func migrated(t *testing.T, text string, some ...shards.Number) *shards.Map {
	t.Helper()
	m := shardtest.New(t, shardtest.Config{Shards: 16}).Map
	files := fstest.MapFS{"001_test.sql": {Data: []byte(text)}, "002_test.sql": {Data: []byte("create table last (id bigint)")}}
	if _, err := migrate.Up(t.Context(), migrate.Config{Map: m, Files: files, Shards: shards.SetOf(some...)}); err != nil {
		t.Fatal(err)
	}
	return m
}

// value runs statements in a shard and returns the last one's first value, as text.
func value(t *testing.T, m *shards.Map, n shards.Number, statements string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), m.Host(n).ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	results, err := conn.PgConn().Exec(t.Context(), "set search_path = "+m.SearchPath(n)+"; "+statements).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := results[len(results)-1]
	if len(last.Rows) == 0 {
		return ""
	}
	return string(last.Rows[0][0])
}
