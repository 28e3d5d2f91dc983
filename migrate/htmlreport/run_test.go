package htmlreport_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/htmlreport"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestRun is a run over 15 of 16 shards, of which one stands at the newest version and two fail because of their rows.
func TestRun(t *testing.T) {
	t.Parallel()
	cluster := shardtest.New(t, shardtest.Config{Migrations: fstest.MapFS{
		"001_users.sql": {Data: []byte("create table users (name text)")},
	}})
	conn, err := pgx.Connect(t.Context(), cluster.Map.Host(3).ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "insert into shard_00003.users values ('<b>'), ('<b>'); insert into shard_00005.users values ('ann'), ('ann')"); err != nil {
		t.Fatal(err)
	}

	var collector htmlreport.Collector
	cfg := migrate.Config{
		Map: cluster.Map, By: "ann@desk", Events: collector.Event, Shards: set(t, "7"),
		Files: fstest.MapFS{
			"001_users.sql":  {Data: []byte("create table users (name text);")},
			"002_photos.sql": {Data: []byte("create table photos ();")},
			"003_unique.sql": {Data: []byte("\ncreate unique index users_name on users (name);")},
		},
	}
	if _, err := migrate.Up(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	collector = htmlreport.Collector{}
	cfg.Events, cfg.Shards = collector.Event, set(t, "0-14")
	report, err := migrate.Up(t.Context(), cfg)
	p := write(t, &collector, cluster.Map, report, err)

	equal(t, "squares", len(p.squares), 16)
	if s := p.squares[0]; !strings.HasPrefix(s.title, "shard 0 (shard_00000 on pg-a): done, version 1 → 3 in ") || !strings.HasPrefix(s.class, "d") || len(s.class) != 2 {
		t.Errorf("square 0: %v", s)
	}
	p.has(3, "f", "shard 3 (shard_00003 on pg-a): failed, version 1 → 2 in ", `: migration 003_unique.sql, line 2: could not create unique index "users_name" (SQLSTATE 23505); detail: Key (name)=(<b>) is duplicated.; in: create unique index users_name on users (name)`)
	p.has(7, "u", "shard 7 (shard_00007 on pg-a): up to date", "up to date")
	p.has(15, "m", "shard 15 (shard_00015 on pg-b): not in this run", "not in this run")
	equal(t, "steps", strings.Join(p.rows["steps"], "; "), "1|2|2|3,5; 1|3|12|0-2,4,6,8-14")
	equal(t, "failures", strings.Join(p.rows["failures"], "\n"), `3|pg-a|23505|003_unique.sql|2|migration 003_unique.sql, line 2: could not create unique index "users_name" (SQLSTATE 23505); detail: Key (name)=(<b>) is duplicated.; in: create unique index users_name on users (name)create unique index users_name on users (name)
5|pg-a|23505|003_unique.sql|2|migration 003_unique.sql, line 2: could not create unique index "users_name" (SQLSTATE 23505); detail: Key (name)=(ann) is duplicated.; in: create unique index users_name on users (name)create unique index users_name on users (name)`)
	equal(t, "slowest", len(p.rows["slowest"]), 10)
	equal(t, "changed", strings.Join(p.rows["changed"], "; "), "1|001_users.sql|0-14|kiloshard migrate accept 1")
	p.says("Run "+report.Run, "by ann@desk", "began "+report.Began.UTC().Format("2006-01-02 15:04:05 UTC"), "to version 3: partly done",
		"12done", "1up to date", "2failed", "0not attempted", "1not in this run", "8 shards: 5 done, 1 up to date, 2 failed", "8 shards: 7 done, 1 not in this run")
}
