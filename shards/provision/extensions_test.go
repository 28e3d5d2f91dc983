package provision_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestExtensions: Create and Upgrade create extensions on every host, also on one without shards, and a shard's path
// finds them.
func TestExtensions(t *testing.T) {
	t.Parallel()
	hosts := shardtest.Hosts(t, 2)
	c := shardtest.MapConfig(4, hosts[:1])
	c.Hosts = hosts
	c.Extensions = []shards.Extension{{Name: "citext"}, {Name: "cube", Schema: "more ext"}, {Name: "earthdistance", Schema: "more ext"}}
	m := build(t, c)
	dry, err := provision.Create(t.Context(), provision.CreateConfig{Map: m, DryRun: true})
	report := create(t, m)
	if got := strings.Join(report.Extensions, ", "); err != nil || len(report.Extensions) != 6 || strings.Join(dry.Extensions, ", ") != got {
		t.Errorf("made %s; a dry run: %v, %v", got, dry.Extensions, err)
	}
	const schemas = `select string_agg(extname || ' ' || extnamespace::regnamespace, ', ' order by extname) from pg_extension where extname <> 'plpgsql'`
	for _, host := range m.Hosts() {
		if got := on(t, host, schemas)[0]; got != `citext public, cube "more ext", earthdistance "more ext"` {
			t.Errorf("%s has %s", host.Name, got)
		}
	}
	if again := create(t, m); len(again.Extensions) != 0 {
		t.Errorf("again: %v", again.Extensions)
	}
	checkComplete(t, m)
	conn := session(t, m.Host(1))
	if _, err := conn.Exec(t.Context(), "set search_path = "+m.SearchPath(1)); err != nil {
		t.Fatal(err)
	}
	var found bool
	if err := conn.QueryRow(t.Context(), "select 'A'::citext = 'a' and earth() > 0").Scan(&found); err != nil || !found {
		t.Errorf("in the shard's path: %t, %v", found, err)
	}

	on(t, m.Hosts()[1], "drop extension citext")
	on(t, m.Host(2), "create extension hstore schema shard_00002")
	differences, err := provision.Verify(t.Context(), m)
	if err != nil || len(differences) != 2 || differences[0].Kind != provision.KindExtension || differences[1].Kind != provision.KindExtension {
		t.Fatalf("got %v, %v", differences, err)
	}
	for i, want := range []string{
		"public on " + m.Hosts()[1].Name + ": extension: extension citext is missing; expected the extension; kiloshard create makes it",
		"shard_00002 on " + m.Host(2).Name + `: extension: extension hstore: it is in shard shard_00002, which cannot move; expected schema public: run ALTER EXTENSION hstore SET SCHEMA public there`,
	} {
		if differences[i].String() != want {
			t.Errorf("got  %s\nwant %s", differences[i], want)
		}
	}
	if missing := provision.Status(t.Context(), m)[1].MissingExtensions; len(missing) != 1 || missing[0] != "citext" {
		t.Errorf("status says that it lacks %v", missing)
	}
	upgraded, err := provision.Upgrade(t.Context(), provision.UpgradeConfig{CreateConfig: provision.CreateConfig{Map: m}})
	if err != nil || len(upgraded.Extensions) != 1 || !strings.HasPrefix(upgraded.Extensions[0], "citext on ") {
		t.Errorf("got %v, %v", upgraded.Extensions, err)
	}
	on(t, m.Host(2), "alter extension hstore set schema public")
	checkComplete(t, m)
}

// TestExtensionsOfTwoVersions: Verify reports a host with another version than the first. Shards cannot move between
// them.
func TestExtensionsOfTwoVersions(t *testing.T) {
	t.Parallel()
	c := shardtest.MapConfig(4, shardtest.Hosts(t, 2))
	c.Extensions = []shards.Extension{{Name: "citext"}}
	m := build(t, c)
	on(t, m.Hosts()[1], "create extension citext schema public version '1.4'")
	create(t, m)
	differences, err := provision.Verify(t.Context(), m)
	if err != nil || len(differences) != 1 || !strings.HasPrefix(differences[0].String(), "public on "+m.Hosts()[1].Name+": extension: extension citext: it is of version 1.4; expected version 1.") {
		t.Errorf("got %v, %v", differences, err)
	}
	on(t, m.Hosts()[1], "alter extension citext update")
	checkComplete(t, m)
}

// TestUnavailableExtensions: the error describes the host and a remedy, and Create changes nothing.
func TestUnavailableExtensions(t *testing.T) {
	t.Parallel()
	type test struct {
		name, before string
		extension    shards.Extension
		want         string
	}
	tests := []test{
		{"another schema", "create schema ext; create extension citext schema ext", shards.Extension{Name: "citext"}, `extension citext: it is in schema ext; expected schema public: run ALTER EXTENSION citext SET SCHEMA public there, or put {name: citext, schema: ext} into extensions of the config`},
		{"another version", "create extension citext version '1.4'", shards.Extension{Name: "citext", Version: "1.6"}, `extension citext: it is of version 1.4; expected version 1.6: run ALTER EXTENSION citext UPDATE TO '1.6' there, or put version: "1.4"`},
		{"no files", "", shards.Extension{Name: "kiloshard_none"}, "extension kiloshard_none: the server has no files of it: expected the operating system's package with it"},
		{"no such version", "", shards.Extension{Name: "citext", Version: "99"}, "extension citext: the server has no version 99 of it: expected one of 1."},
		{"another before it", "", shards.Extension{Name: "earthdistance"}, "extension earthdistance: it needs cube: expected that before it in extensions"},
	}
	if server := shardtest.Hosts(t, 1)[0]; on(t, server, "select count(*) from pg_available_extensions where name = 'adminpack'")[0] == "1" { // up to Postgres 16
		tests = append(tests, test{"a schema of its own", "", shards.Extension{Name: "adminpack"}, "it can only be in schema pg_catalog: expected {name: adminpack, schema: pg_catalog}"})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := shardtest.MapConfig(2, shardtest.Hosts(t, 1))
			c.Extensions = []shards.Extension{test.extension}
			m := build(t, c)
			if test.before != "" {
				on(t, m.Hosts()[0], test.before)
			}
			_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m, DryRun: true})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err == nil {
				t.Error("it was made")
			}
			if got := on(t, m.Hosts()[0], "select count(*) from pg_namespace where nspname = 'kiloshard'")[0]; got != "0" {
				t.Error("something was installed")
			}
		})
	}
}

// TestExtensionWithoutRights: only a superuser can create the extension.
func TestExtensionWithoutRights(t *testing.T) {
	t.Parallel()
	c := shardtest.MapConfig(2, shardtest.Hosts(t, 1))
	super := c.Hosts[0]
	role := squatter(t, super)
	on(t, super, fmt.Sprintf("alter role %q login password 'secret'", role))
	c.Hosts = []shards.Host{{Name: super.Name, DSN: localpg.AsRole(super.ConnString(), role, "secret")}}
	c.Extensions = []shards.Extension{{Name: "citext"}, {Name: "dblink"}}
	m := build(t, c)
	_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
	const want = `CREATE EXTENSION dblink SCHEMA public`
	if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.Contains(err.Error(), "extension dblink: ERROR: permission denied") {
		t.Fatalf("got %v, want …%s", err, want)
	}
	on(t, super, want)
	create(t, m)
	checkComplete(t, m)
}
