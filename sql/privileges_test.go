package sql_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

var pageBlock = regexp.MustCompile("(?s)```(sql|sh)\n(.*?)```")

// TestPrivileges runs the page's SQL and commands, and tries what each role may do and what it may not.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("privileges.md")
	if err != nil {
		t.Fatal(err)
	}
	hosts := shardtest.Hosts(t, 1)
	m, err := shardtest.MapConfig(4, hosts).Map()
	if err != nil {
		t.Fatal(err)
	}
	admin := connect(t, m)
	database := one[string](t, admin, "select pg_catalog.current_database()::text")
	prefix := "privileges_" + database
	page = []byte(strings.NewReplacer("photos_", prefix+"_", "DATABASE photos ", "DATABASE "+database+" ").Replace(string(page)))
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), hosts[0].ConnString())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		for _, role := range []string{"service", "reader", "owner"} {
			drop := fmt.Sprintf("reassign owned by %[1]s_%[2]s to current_user; drop owned by %[1]s_%[2]s; drop role %[1]s_%[2]s", prefix, role)
			if _, err := conn.Exec(context.Background(), drop); err != nil {
				t.Error(err)
			}
		}
	})
	as := func(role string) shards.Host {
		exec(t, admin, fmt.Sprintf("alter role %s_%s password 'secret'", prefix, role))
		return shards.Host{Name: hosts[0].Name, DSN: localpg.AsRole(hosts[0].ConnString(), prefix+"_"+role, "secret"), Weight: 1}
	}
	login := func(host shards.Host) *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), host.ConnString())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	var owner *pgx.Conn
	var ownersMap *shards.Map
	for i, block := range pageBlock.FindAllStringSubmatch(string(page), -1) {
		if block[1] == "sh" {
			words := strings.Fields(block[2])
			if len(words) < 3 || words[1] != "grant" || len(words) > 3 && words[3] != "--read-only" {
				t.Fatalf("%q: expected kiloshard grant ROLE [--read-only]", block[2])
			}
			cfg := provision.GrantConfig{CreateConfig: provision.CreateConfig{Map: ownersMap}, Role: words[2], ReadOnly: len(words) > 3}
			if report, err := provision.Grant(t.Context(), cfg); err != nil || report.Done.Len() != 4 {
				t.Fatalf("%s: %v, %v", block[2], report, err)
			}
			continue
		}
		exec(t, admin, block[2])
		if i == 0 {
			if ownersMap, err = shardtest.MapConfig(4, []shards.Host{as("owner")}).Map(); err != nil {
				t.Fatal(err)
			}
			if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: ownersMap}); err != nil {
				t.Fatal(err)
			}
			owner = login(as("owner"))
			exec(t, owner, "create table shard_00001.schema_version (version int4 not null primary key)", "insert into shard_00001.schema_version values (0)")
		}
	}
	exec(t, owner, "create table shard_00001.photos (id bigint primary key default shard_00001.next_id(), title text)") // by a later migration
	service, reader := login(as("service")), login(as("reader"))
	exec(t, service, "insert into shard_00001.photos (title) select 'x' from generate_series(1, 100)", "select shard_00002.next_ids(5)",
		"update shard_00001.photos set title = 'y'", "select version from shard_00001.schema_version")
	exec(t, reader, "select from shard_00001.photos", "select version from shard_00001.schema_version")
	const insufficientPrivilege = "42501"
	for _, statement := range []string{
		"create table shard_00001.mine ()", "create schema mine", "create table public.mine ()", "create table kiloshard.mine ()",
		"update shard_00001.schema_version set version = 9", "select setval('shard_00001.next_id_seq', 1)", "drop table shard_00001.photos",
		"do $$ begin lock table kiloshard_locks.setter_0 in share update exclusive mode; end $$", "update kiloshard.settings set cluster = 'mine'",
		"do $$ begin lock table shard_00001.schema_version in share update exclusive mode; end $$", "do $$ begin lock table shard_00001.schema_version in share mode; end $$",
		"do $$ begin lock table kiloshard.lock_install in access share mode; end $$", "do $$ begin lock table kiloshard.lock_create in share update exclusive mode; end $$",
		"select kiloshard.note_command('x', 'x', 'x')", "insert into kiloshard.audit values (default, now(), 'x', null, 'x', 'x', 'x')", "table kiloshard.audit", "truncate kiloshard.audit",
		"create trigger t before insert on shard_00001.photos execute function suppress_redundant_updates_trigger()", "create temporary table t ()",
	} {
		refused(t, service, insufficientPrivilege, statement)
		refused(t, reader, insufficientPrivilege, statement)
	}
	refused(t, reader, insufficientPrivilege, "insert into shard_00001.photos (id) values (1)")
	refused(t, reader, insufficientPrivilege, "select shard_00001.next_id()")
	if differences, err := provision.Verify(t.Context(), ownersMap); err != nil || len(differences) > 0 {
		t.Errorf("verify as owner: got %v, %v", differences, err)
	}
	exec(t, admin, fmt.Sprintf("create role %s_stranger login", prefix))
	t.Cleanup(func() { dropRole(t, m, prefix+"_stranger") })
	if conn, err := pgx.Connect(t.Context(), as("stranger").ConnString()); err == nil || !strings.Contains(err.Error(), "permission denied for database") {
		t.Errorf("a stranger: got %v", err)
		if conn != nil {
			_ = conn.Close(t.Context())
		}
	}
}
