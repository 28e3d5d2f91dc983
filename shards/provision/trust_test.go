package provision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/sql"
)

// squatter creates a role that may only create schemas on a host, and returns its name.
func squatter(t *testing.T, host shards.Host) string {
	t.Helper()
	name := "squatter_" + on(t, host, "select current_database()")[0]
	on(t, host, fmt.Sprintf("create role %[1]q; do $$ begin execute format('grant create on database %%I to %[1]q', current_database()); end $$", name))
	t.Cleanup(func() { on(t, host, fmt.Sprintf("drop owned by %[1]q cascade; drop role %[1]q", name)) })
	return name
}

// grab creates a trigger function and a function that record the role they run as.
const grab = `
	create schema loot; grant usage on schema loot to public; create table loot.taken (by name); grant insert on loot.taken to public;
	create function loot.take() returns trigger language plpgsql as 'begin insert into loot.taken values (current_user); return new; end';
	create function loot.took() returns int language plpgsql as 'begin insert into loot.taken values (current_user); return 1; end'; `

const settingsTable = `create table kiloshard.settings (one boolean primary key default true, cluster text not null, schema_prefix text not null, epoch timestamptz not null,
	time_bits int not null, shard_bits int not null, type_bits int not null default 0, sequence_bits int not null, engine text not null); `

// TestSquatting has a role with CREATE on the database create objects that Create would use. Create must not run their
// code.
func TestSquatting(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, made, want string }{
		{"the helper schema", `create schema kiloshard`, "schema kiloshard belongs to role "},
		{"settings with a trigger", `create schema kiloshard; ` + settingsTable + `create trigger grab before insert on kiloshard.settings for each row execute function loot.take()`, "schema kiloshard belongs to role "},
		{"settings that are a view", `create schema kiloshard; create view kiloshard.settings as select true as one, 'x'::text as cluster, 's'::text as schema_prefix, now() as epoch,
			loot.took() as time_bits, 1 as shard_bits, 0 as type_bits, 1 as sequence_bits, 'x'::text as engine; grant usage on schema kiloshard to public; grant select on kiloshard.settings to public`, "schema kiloshard belongs to role "},
		{"the schema of a shard", `create schema shard_00002; create sequence shard_00002.next_id_seq maxvalue 1125899906842623; grant all on schema shard_00002 to public`, "schema shard_00002 belongs to role "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := newMap(t, 8)
			host := m.Host(2)
			role := squatter(t, host)
			on(t, host, fmt.Sprintf("set session authorization %q; %s%s", role, grab, test.made))
			_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), role) {
				t.Errorf("Create: got %v, expected %q and role %s", err, test.want, role)
			}
			differences, err := provision.Verify(t.Context(), m)
			if err != nil {
				t.Error(err)
			}
			found := false
			for _, d := range differences {
				found = found || d.Kind == provision.KindForeign && strings.Contains(d.Found, test.want+role)
			}
			if !found {
				t.Errorf("Verify does not tell: %v", differences)
			}
			if taken := on(t, host, "select string_agg(by, ', ') from loot.taken"); taken[0] != "" {
				t.Errorf("code of the squatter ran with the rights of %s", taken)
			}
		})
	}
}

// TestForeignTriggers: another role adds a trigger or the like to an object that Create has made.
func TestForeignTriggers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, made, want string }{
		{"a trigger", "create trigger grab after update on kiloshard.settings for each row execute function loot.take()", "trigger grab on kiloshard.settings"},
		{"a rule", "create rule grab as on update to kiloshard.settings do also notify grabbed", "rule grab on kiloshard.settings"},
		{"a policy", "alter table kiloshard.settings enable row level security", "kiloshard.settings has row-level security"},
		{"a default", "alter table kiloshard.settings alter cluster set default loot.took()::text", "column cluster of kiloshard.settings has the default "},
		{"a child", "create table loot.child () inherits (kiloshard.settings)", "kiloshard.settings is no plain table"},
		{"a foreign key", "create table loot.child (one boolean references kiloshard.settings on update cascade); alter table loot.child owner to %[1]q", "foreign key child_one_fkey of loot.child on kiloshard.settings"},
		{"a function", "create function kiloshard.helpful() returns int language sql as 'select 1'; alter function kiloshard.helpful() owner to %[1]q", "function kiloshard.helpful() belongs to role "},
		{"a version table", "create table shard_00002.schema_version (version int4); alter table shard_00002.schema_version owner to %[1]q", "shard_00002.schema_version belongs to role "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := created(t, 8)
			host := m.Host(2)
			role := squatter(t, host)
			made := test.made
			if strings.Contains(made, "%") {
				made = fmt.Sprintf(made, role)
			}
			on(t, host, grab+made)
			_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Create: got %v, expected %q", err, test.want)
			}
			differences, err := provision.Verify(t.Context(), m)
			if err != nil || len(differences) != 1 || !strings.Contains(differences[0].Found, test.want) {
				t.Errorf("Verify: got %v, %v, expected %q", differences, err, test.want)
			}
		})
	}
}

// TestGrants: Verify reports grants that let other roles add triggers or the like to our objects.
func TestGrants(t *testing.T) {
	t.Parallel()
	m := created(t, 8)
	host := m.Host(2)
	role := squatter(t, host)
	on(t, host, "begin; "+sql.Ledger()+sql.Moves()+"; commit; create table shard_00002.schema_version (version int)")
	for _, grant := range []string{
		"create on schema kiloshard", "trigger on kiloshard.settings", "references on kiloshard.settings", "create on schema shard_00002",
		"update on kiloshard.ledger", "insert on kiloshard.moves", "insert on kiloshard.audit", "update on shard_00002.schema_version",
	} {
		on(t, host, fmt.Sprintf("grant %s to %q", grant, role))
	}
	differences, err := provision.Verify(t.Context(), m)
	if err != nil || len(differences) != 8 {
		t.Errorf("got %v, %v, expected eight grants", differences, err)
	}
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Error(err)
	}
}

// TestOwnerWithoutSuperuser creates, verifies and upgrades shards as an ordinary role that owns the database.
func TestOwnerWithoutSuperuser(t *testing.T) {
	t.Parallel()
	m := newMap(t, 8)
	c := m.Config()
	c.Hosts = slices.Clone(c.Hosts)
	for i, host := range c.Hosts {
		database := on(t, host, "select current_database()")[0]
		on(t, host, fmt.Sprintf("create role %[1]q login password 'secret'; alter database %[2]q owner to %[1]q", "owner_"+database, database))
		t.Cleanup(func() {
			on(t, host, fmt.Sprintf("reassign owned by %[1]q to current_user; drop owned by %[1]q; drop role %[1]q", "owner_"+database))
		})
		c.Hosts[i].DSN = localpg.AsRole(host.ConnString(), "owner_"+database, "secret")
	}
	asOwner := build(t, c)
	create(t, asOwner)
	checkComplete(t, asOwner)
	if _, err := provision.Upgrade(t.Context(), provision.UpgradeConfig{CreateConfig: provision.CreateConfig{Map: asOwner}}); err != nil {
		t.Error(err)
	}
	// A superuser does not take over objects of another role.
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err == nil || !strings.Contains(err.Error(), "belongs to role owner_") {
		t.Errorf("as superuser: got %v", err)
	}
}

// TestEventTriggers: Create refuses an event trigger of another role. It would run with the rights of Create's role.
func TestEventTriggers(t *testing.T) {
	t.Parallel()
	m := newMap(t, 8)
	host := m.Host(2)
	role := squatter(t, host)
	t.Cleanup(func() { on(t, host, "drop event trigger grab") })
	on(t, host, fmt.Sprintf(`create function public.grab() returns event_trigger language plpgsql as 'begin end'; alter role %[1]q superuser; set role %[1]q;
		create event trigger grab on ddl_command_end execute function public.grab(); reset role; alter role %[1]q nosuperuser`, role))
	_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
	if want := "event trigger grab belongs to role " + role; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, expected %q", err, want)
	}
}
