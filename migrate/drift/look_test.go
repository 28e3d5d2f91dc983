package drift_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

const users = "create table users (id bigint primary key default next_id(), name text)"

func TestGroups(t *testing.T) {
	t.Parallel()
	m := migrated(t, 40, users)
	exec(t, m, "alter table users add column extra text", 7, 30, 31)
	exec(t, m, "alter table users add column other text", 9)
	report := look(t, m)
	var got []string
	for _, g := range report.Groups {
		got = append(got, g.Shards.String())
	}
	if want := []string{"0-6,8,10-29,32-39", "7,30-31", "9"}; !slices.Equal(got, want) {
		t.Fatalf("got the groups %q, expected %q", got, want)
	}
	hosts := report.Groups[1].Hosts
	if len(hosts) != 2 || hosts[0].Host != "pg-a" || hosts[0].Shards.String() != "7" || hosts[1].Shards.String() != "30-31" {
		t.Errorf("got the hosts %+v", hosts)
	}
}

// TestManyGroups has more groups than are looked into.
func TestManyGroups(t *testing.T) {
	t.Parallel()
	m := migrated(t, 32, users)
	for n := shards.Number(4); n < 29; n++ {
		exec(t, m, "alter table users add column "+string(rune('a'+n-4))+" text", n)
	}
	report := look(t, m)
	if len(report.Groups) != 26 || report.Groups[0].Shards.String() != "0-3,29-31" {
		t.Fatalf("got %d groups, expected 26: %+v", len(report.Groups), report.Groups)
	}
	for i, g := range report.Groups[1:] {
		if g.Shards.Len() != 1 || len(g.Differences) > 1 || (len(g.Differences) == 1) != (i < 20) {
			t.Errorf("group %d: %+v", i+1, g)
		}
	}
}

// TestOddOneIsTheFirst has shard 0 differ, alone and beside others.
func TestOddOneIsTheFirst(t *testing.T) {
	t.Parallel()
	m := migrated(t, 16, users)
	exec(t, m, "alter table users add column extra text", 0)
	checkDrift(t, m, "0", "+ ALTER TABLE {{.schema}}.users ADD COLUMN extra text /* column 3 */")
	report, err := drift.Look(t.Context(), drift.Config{Map: m, Shards: shards.SetOf(1, 2, 3)})
	if err != nil || report.Drift() || len(report.Groups) != 1 || report.Groups[0].Shards.String() != "1-3" {
		t.Errorf("got %+v, %v", report, err)
	}
}

// TestBatches reads the shards of a host in several queries.
func TestBatches(t *testing.T) {
	t.Parallel()
	m := migrated(t, 16, users, "create view names as select name from users")
	exec(t, m, "create or replace view names as select name from users where id > 0", 15)
	report, err := drift.Look(t.Context(), drift.Config{Map: m, Batch: 3})
	if err != nil || len(report.Groups) != 2 || report.Groups[1].Shards.String() != "15" {
		t.Errorf("got %+v, %v", report, err)
	}
}

// TestNumbers are structures with the numbers of shards in them, and numbers that stand for something else.
func TestNumbers(t *testing.T) {
	t.Parallel()
	const numbered = `create table users (
		id bigint primary key, shard int not null default {{.shard}} check (shard = {{.shard}}),
		name varchar(10), price numeric(12, 3) default 0, one int default 1);
		create table users_{{.shard}} (n int);
		create function own() returns int language sql as 'select {{.shard}} /* {{.schema}} */';
		create view own_users as select * from users where shard = {{.shard}};`
	t.Run("alike", func(t *testing.T) {
		t.Parallel()
		checkAlike(t, migrated(t, 24, numbered))
	})
	t.Run("another shard's number", func(t *testing.T) {
		t.Parallel()
		m := migrated(t, 24, numbered)
		exec(t, m, "alter table users alter column shard set default 4", 3)
		checkDrift(t, m, "3",
			"- ALTER TABLE {{.schema}}.users ADD COLUMN shard integer DEFAULT 3 NOT NULL /* column 2 */",
			"+ ALTER TABLE {{.schema}}.users ADD COLUMN shard integer DEFAULT 4 NOT NULL /* column 2 */")
	})
	t.Run("two in the same way", func(t *testing.T) {
		t.Parallel()
		m := migrated(t, 24, numbered)
		exec(t, m, "alter table users add column extra text", 3, 21)
		checkDrift(t, m, "3,21", "+ ALTER TABLE {{.schema}}.users ADD COLUMN extra text /* column 6 */")
	})
	t.Run("a number that happens to be the shard's", func(t *testing.T) {
		t.Parallel()
		m := migrated(t, 24, "create table users (n int default 0)")
		exec(t, m, "alter table users alter column n set default 7", 7)
		checkDrift(t, m, "7",
			"- ALTER TABLE {{.schema}}.users ADD COLUMN n integer DEFAULT 0 /* column 1 */",
			"+ ALTER TABLE {{.schema}}.users ADD COLUMN n integer DEFAULT 7 /* column 1 */")
	})
}

func TestVersions(t *testing.T) {
	t.Parallel()
	m := migrated(t, 16, users)
	// Some shards are a migration ahead, one of them wrongly.
	exec(t, m, "alter table users add column born date; update schema_version set version = 2", 3, 4, 12)
	exec(t, m, "alter table users add column born text; update schema_version set version = 2", 13)
	report := look(t, m)
	if len(report.Groups) != 3 || !report.Drift() {
		t.Fatalf("got %+v, expected 3 groups", report.Groups)
	}
	want := []struct {
		version int32
		main    bool
		shards  string
	}{{1, true, "0-2,5-11,14-15"}, {2, true, "3-4,12"}, {2, false, "13"}}
	for i, w := range want {
		g := report.Groups[i]
		if g.Version != w.version || g.Main != w.main || g.Shards.String() != w.shards {
			t.Errorf("group %d: got version %d, main %t, shards %s, expected %+v", i, g.Version, g.Main, g.Shards, w)
		}
	}
	if d := report.Groups[2].Differences; len(d) != 2 || !strings.Contains(d[1], "ADD COLUMN born text") {
		t.Errorf("got the differences %q", d)
	}
}

func TestInvalidIndex(t *testing.T) {
	t.Parallel()
	m := migrated(t, 16, users, "create index users_name on users (name)")
	exec(t, m, "drop index users_name; insert into users (name) values ('ada'), ('ada')", 5)
	if err := execAlone(t, m.Host(5), "create unique index concurrently users_name on shard_00005.users (name)"); err == nil {
		t.Fatal("there is a unique index on names that are alike")
	}
	checkDrift(t, m, "5",
		"- CREATE INDEX users_name ON {{.schema}}.users USING btree (name)",
		"+ CREATE UNIQUE INDEX users_name ON {{.schema}}.users USING btree (name); /* index {{.schema}}.users_name is invalid */")
}

// TestTheToolkitsOwn does not count: what a shard lacks of it, verify tells.
func TestTheToolkitsOwn(t *testing.T) {
	t.Parallel()
	c := shardtest.MapConfig(16, shardtest.Hosts(t, 2))
	c.Generators = []shards.Generator{{Kind: shards.Interleaved, Names: []string{"photo"}}, {Kind: shards.UUIDv7, Names: []string{"album"}}}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	exec(t, m, "drop function next_ids(int); drop function next_album_id()", 4)
	checkAlike(t, m)
	exec(t, m, "create table kiloshard_directory (key text primary key)", 4) // as create was interrupted
	checkAlike(t, m)
	exec(t, m, "create function next_other_id() returns bigint language sql as 'select 1::bigint'", 4)
	if report := look(t, m); !report.Drift() || report.Groups[1].Shards.String() != "4" {
		t.Errorf("got %+v", report.Groups)
	}
}

func TestNotCreated(t *testing.T) {
	t.Parallel()
	m := migrated(t, 16, users)
	exec(t, m, "drop schema shard_00003 cascade", 3)
	report := look(t, m)
	if report.NotCreated.String() != "3" || report.Drift() || report.Groups[0].Shards.Len() != 15 {
		t.Errorf("got %+v", report)
	}
	_, err := drift.Lines(t.Context(), m, 3)
	var e *shards.ShardError
	if !errors.As(err, &e) || e.Shard != 3 {
		t.Errorf("lines of a shard that is not created: %v", err)
	}
}

func TestAHostDoesNotAnswer(t *testing.T) {
	t.Parallel()
	m := migrated(t, 16, users)
	exec(t, m, "alter table users add column extra text", 3)
	exec(t, m, "drop table schema_version; create table schema_version (v int)", 5)
	c := m.Config()
	c.Hosts = slices.Clone(c.Hosts)
	c.Hosts[1].DSN = "postgres://postgres@127.0.0.1:1/none"
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	report, err := drift.Look(t.Context(), drift.Config{Map: m})
	var partial *shards.PartialError
	var host *shards.HostError
	if !errors.As(err, &partial) || !errors.As(err, &host) || host.Host != "pg-b" {
		t.Fatalf("got %v, expected a PartialError for pg-b", err)
	}
	if partial.Done.String() != "0-4,6-7" || partial.NotAttempted.String() != "8-15" || len(partial.Failed) != 1 || partial.Failed[0].Shard != 5 {
		t.Errorf("got %v", partial)
	}
	if len(report.Groups) != 2 || report.Groups[1].Shards.String() != "3" || len(report.Groups[1].Differences) != 1 {
		t.Errorf("got %+v", report.Groups)
	}
	if _, err := drift.Lines(t.Context(), m, 12); !errors.As(err, &host) {
		t.Errorf("lines of a shard there: %v", err)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	m := migrated(t, 16, users)
	lines, err := drift.Lines(t.Context(), m, 12)
	want := []string{
		"ALTER TABLE {{.schema}}.users ADD COLUMN id bigint DEFAULT {{.schema}}.next_id() NOT NULL /* column 1 */",
		"ALTER TABLE {{.schema}}.users ADD COLUMN name text /* column 2 */",
		"ALTER TABLE {{.schema}}.users ADD CONSTRAINT users_pkey PRIMARY KEY (id)",
		"CREATE TABLE {{.schema}}.users ()",
	}
	if err != nil || !slices.Equal(lines, want) {
		t.Errorf("got %q, %v", lines, err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := drift.Look(t.Context(), drift.Config{}); err == nil {
		t.Error("without a map: no error")
	}
	m := migrated(t, 16)
	if _, err := drift.Look(t.Context(), drift.Config{Map: m, Shards: shards.SetOf(3, 16)}); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("shard 16: got %v", err)
	}
	checkAlike(t, m)
}
