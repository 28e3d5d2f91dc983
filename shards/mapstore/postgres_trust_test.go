package mapstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
)

// login makes a role without rights and returns a DSN of it.
func login(t *testing.T, dsn, name string) (role, asRole string) {
	t.Helper()
	role = name + "_of_" + queryOne[string](t, dsn, "select current_database()::text")
	execSQL(t, dsn, "create role "+role+" login password 'sesame'")
	t.Cleanup(func() {
		execSQL(t, dsn, "drop owned by "+role+" cascade")
		execSQL(t, dsn, "drop role "+role)
	})
	return role, localpg.AsRole(dsn, role, "sesame")
}

const loot = `create schema loot; grant usage on schema loot to public; create table loot.taken (by name); grant insert on loot.taken to public;
	create function loot.take() returns trigger language plpgsql as 'begin insert into loot.taken values (current_user); return new; end';
	create function loot.took() returns text language plpgsql as 'begin insert into loot.taken values (current_user); return 1; end';
	create schema kiloshard; grant usage on schema kiloshard to public;`

// TestPostgresSquatting has a role that may create schemas make the table before the first change does.
func TestPostgresSquatting(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, made, want string }{
		{"a table with a trigger", `create table kiloshard.maps (cluster text, version int, follows int, document text, made_at timestamptz default now(), made_by text, role name default session_user, why text, attempt text);
			create trigger grab before insert on kiloshard.maps for each row execute function loot.take(); grant all on kiloshard.maps to public`, "schema kiloshard belongs to role squatter_"},
		{"a view", `create view kiloshard.maps as select loot.took() as document, 'photos'::text as cluster, 1 as version, 0 as follows, now() as made_at, ''::text as made_by, ''::text as why, ''::text as attempt;
			grant all on kiloshard.maps to public`, "expected a plain table"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dsn := newDatabase(t, server)
			role, asRole := login(t, dsn, "squatter")
			execSQL(t, dsn, "do $$ begin execute format('grant create on database %I to "+role+"', current_database()); end $$")
			execSQL(t, asRole, loot+test.made)
			s := openPostgres(t, dsn)
			_, loading := s.Load(newContext(t))
			ctx := newContext(t)
			if _, err := s.Swap(ctx, 0, newChange(1)); err == nil || !strings.Contains(err.Error(), test.want) || ctx.Err() != nil {
				t.Errorf("Swap: got %v, %v, Load: %v", err, ctx.Err(), loading)
			}
			if taken := queryOne[string](t, dsn, "select coalesce(string_agg(by, ', '), '') from loot.taken"); taken != "" {
				t.Errorf("code of the squatter ran with the rights of %s", taken)
			}
		})
	}
}

// TestPostgresSwapped has a role that may create in the schema put a view in the place of the table while it is waited
// for.
func TestPostgresSwapped(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	const (
		columns = "cluster text, version int, follows int, document text, made_at timestamptz, made_by text, why text, attempt text, role name"
		view    = "select 'photos'::text as cluster, loot.took() as version, 0 as follows, ''::text as document, now() as made_at, ''::text as made_by, ''::text as why, ''::text as attempt, ''::name as role"
	)
	var err error
	taken := pgtest.Swap(t, dsn, "kiloshard", "maps", columns, view, func() { _, err = s.Load(newContext(t)) })
	if taken != "" {
		t.Errorf("foreign code ran with the rights of %s", taken)
	}
	if err == nil || !strings.Contains(err.Error(), "expected a plain table") {
		t.Errorf("got %v", err)
	}
}

// TestPostgresWriter has a role that may insert, and nothing else, write what it likes.
func TestPostgresWriter(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	swap(t, s, 0, 1)
	role, asRole := login(t, dsn, "writer")
	execSQL(t, dsn, "grant usage on schema kiloshard to "+role)
	execSQL(t, dsn, "grant insert, select on kiloshard.maps to "+role)
	insert := func(version, follows string) error {
		return tryExecSQL(t, asRole, `insert into kiloshard.maps (cluster, version, follows, document, made_at, made_by, role, why, attempt)
			select cluster, `+version+`, `+follows+`, document, '2020-01-01', E'the boss\x1b[2J', 'postgres', '', 'x' from kiloshard.maps limit 1`)
	}
	if err := insert("2147483647", "1"); err == nil || !strings.Contains(err.Error(), "expected one more") {
		t.Errorf("the last version of all: got %v", err)
	}
	if err := insert("9", "8"); err == nil || !strings.Contains(err.Error(), "is at version 1, not 8") {
		t.Errorf("a gap: got %v", err)
	}
	if err := insert("2", "1"); err != nil {
		t.Fatal(err)
	}
	if got := queryOne[string](t, dsn, "select role || ' ' || (made_at > now() - interval '1 hour') || ' ' || made_by from kiloshard.maps where version = 2"); got != role+" true the boss [2J" {
		t.Errorf("the history says %q", got)
	}
	if e := load(t, s); e.Role != role || e.By != "the boss [2J" || time.Since(e.At) > time.Hour {
		t.Errorf("made by role %q, claimed %q, at %s", e.Role, e.By, e.At)
	}
	writer := openPostgres(t, asRole)
	swap(t, writer, 2, 3)
	if e := load(t, s); e.Map.Version() != 3 {
		t.Errorf("version %d", e.Map.Version())
	}
}

// TestPostgresUpgrade starts with a table of the release before, which had no trigger for what is inserted.
func TestPostgresUpgrade(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	swap(t, openPostgres(t, dsn), 0, 1)
	execSQL(t, dsn, "drop trigger note_map on kiloshard.maps")
	execSQL(t, dsn, "drop function kiloshard.note_map()")
	swap(t, openPostgres(t, dsn), 1, 2)
	if n := queryOne[int](t, dsn, "select count(*)::int from pg_trigger where tgname = 'note_map'"); n != 1 {
		t.Errorf("%d triggers", n)
	}
}
