package move_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

var pageBlock = regexp.MustCompile("(?s)```sql\n(.*?)```")

// A role that is no superuser moves a shard with what the page gives it, and each right that it lacks is named beforehand.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("privileges.md")
	if err != nil {
		t.Fatal(err)
	}
	b, c, owner := ownedByRole(t, 2)
	ours := strings.NewReplacer("photos_owner", owner)
	var blocks []string
	for _, block := range pageBlock.FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, ours.Replace(block[1]))
	}
	const allowed = 16 // the version from which on a role that is no superuser may make subscriptions
	old := b.text(0, `select current_setting('server_version_num')::int / 10000 < `+fmt.Sprint(allowed)) == "t"
	if old {
		blocks = blocks[:1]
	}
	problems := func() string {
		planned, err := move.Plan(t.Context(), c.cfg)
		if err != nil || len(planned) != 1 {
			t.Fatal(planned, err)
		}
		return strings.Join(planned[0].Problems, "; ")
	}
	if got := problems(); !strings.Contains(got, "may not make slots: expected REPLICATION") || !strings.Contains(got, "may not make subscriptions: expected a superuser") {
		t.Errorf("without rights: %s", got)
	}
	for i, block := range blocks {
		for j, statement := range strings.SplitAfter(strings.TrimSpace(block), ";\n") {
			if i == 1 && j == 1 {
				if got := problems(); !strings.Contains(got, "may not set session_replication_role") || !strings.Contains(got, "keep it out of the server's log") {
					t.Errorf("without the settings: %s", got)
				}
			}
			b.exec(0, statement) // both hosts are databases of one server
		}
	}
	if old {
		if got := problems(); strings.Contains(got, "REPLICATION") || !strings.Contains(got, "as Postgres 15 asks") {
			t.Errorf("on Postgres 15: %s", got)
		}
		return
	}
	if got := problems(); got != "" {
		t.Fatal(got)
	}
	if _, err := move.Run(t.Context(), c.cfg); err != nil {
		t.Fatal(err)
	}
	c.served("pg-b", "by a role that is no superuser")
	c.equal("owner", c.text(1, `select tableowner from pg_tables where schemaname = 'shard_00001' and tablename = 'photos'`), owner)
	c.clean()
}

// ownedByRole returns a cluster as a superuser sees it, and as a role that is no superuser and owns the shards of so many hosts does.
func ownedByRole(t *testing.T, owned int) (b, c *bundle, owner string) {
	t.Helper()
	b = &bundle{t: t}
	hosts := shardtest.Hosts(t, 2)
	var err error
	if b.m, err = shardtest.MapConfig(4, hosts).Map(); err != nil {
		t.Fatal(err)
	}
	owner = "mover_of_" + b.text(0, `select current_database()`)
	b.exec(0, fmt.Sprintf(`create role %s login password 'secret'`, owner))
	t.Cleanup(func() {
		for host := range hosts {
			_ = b.tryLater(host, fmt.Sprintf(`reassign owned by %[1]s to current_user; drop owned by %[1]s`, owner)) // the end would tell
		}
		if err := b.tryLater(0, "drop role "+owner); err != nil {
			t.Error(err)
		}
	})
	as := make([]shards.Host, len(hosts))
	for i, h := range hosts {
		b.exec(i, fmt.Sprintf(`do $$ begin execute format('alter database %%I owner to %s', current_database()); end $$`, owner))
		as[i] = h
		if i < owned {
			as[i] = shards.Host{Name: h.Name, DSN: localpg.AsRole(h.ConnString(), owner, "secret"), Weight: 1}
		}
	}
	c = setupOn(t, shardtest.MapConfig(4, as))
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: c.m}); err != nil {
		t.Fatal(err)
	}
	if _, err := migrate.Up(t.Context(), migrate.Config{Map: c.m, Files: migrations}); err != nil {
		t.Fatal(err)
	}
	c.exec(0, fill)
	return b, c, owner
}

// A role that does not see all rows moves no shard: it would leave some behind. One that does moves them all.
func TestPolicies(t *testing.T) {
	t.Parallel()
	for owned := 1; owned <= 2; owned++ {
		b, c, owner := ownedByRole(t, owned)
		b.exec(0, fmt.Sprintf("alter role %[1]s replication; grant pg_read_all_stats to %[1]s", owner))
		c.exec(0, `alter table shard_00001.photos enable row level security; alter table shard_00001.photos force row level security;
			create policy most on shard_00001.photos using (title <> 'photo 7')`)
		_, err := move.Run(t.Context(), c.cfg)
		wants := []string{"pg-a: role " + owner + " does not see all rows of photos"}
		if owned == 2 {
			wants = append(wants, "pg-b: role "+owner+" may not write to tables that force row-level security")
		}
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, expected %s", err, want)
			}
		}
		b.equal("rows", b.text(0, `select count(*) from shard_00001.photos`), "1000")
		if owned == 2 {
			continue
		}
		b.exec(0, fmt.Sprintf(`alter role %s bypassrls`, owner))
		if _, err := move.Run(t.Context(), c.cfg); err != nil {
			t.Fatal(err)
		}
		b.equal("rows", b.text(1, `select count(*) from shard_00001.photos`), "1000")
	}
}

// tryLater is try once the test's context has ended.
func (b *bundle) tryLater(host int, statements string) error {
	conn, err := connectLater(b.m.Hosts()[host])
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.PgConn().Exec(context.Background(), statements).ReadAll()
	return err
}

// A role that owns shards gets no more rights by a move of one: what would run with the mover's is refused.
func TestNoRightsOnLoan(t *testing.T) {
	t.Parallel()
	b, c, owner := ownedByRole(t, 0)
	b.exec(0, fmt.Sprintf(`
		create function shard_00001.ok(bigint) returns bool language plpgsql as $f$ begin
			if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then alter role %[1]s createrole; end if;
			return true;
		end $f$;
		grant usage on schema shard_00001 to %[1]s; alter function shard_00001.ok(bigint) owner to %[1]s; alter table shard_00001.photos owner to %[1]s;
		set role %[1]s; alter table shard_00001.photos add constraint ok check (shard_00001.ok(id)); reset role`, owner))
	const rights = `select rolcreaterole from pg_roles where rolname = `
	for _, offline := range []bool{false, true} {
		cfg := c.cfg
		cfg.Offline = offline
		if _, err := move.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "constraint ok on table shard_00001.photos calls shard_00001.ok(bigint) for each row, which belongs to role") {
			t.Errorf("offline %t: got %v", offline, err)
		}
	}
	b.exec(0, `alter function shard_00001.ok(bigint) security definer`)
	if _, err := move.Run(t.Context(), c.cfg); err != nil {
		t.Fatal(err)
	}
	b.equal("createrole", b.text(0, rights+"'"+owner+"'"), "f")
	b.equal("rows", b.text(1, `select count(*) from shard_00001.photos`), "1000")
	b.equal("owner", b.text(1, `select tableowner from pg_tables where schemaname = 'shard_00001' and tablename = 'photos'`), owner)
	c.clean()
}
