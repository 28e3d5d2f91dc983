package migrate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

// A login without any rights of its own, which works as the owner of the shards from the first
// statement on.
func TestUpAsAnOrdinaryRole(t *testing.T) {
	t.Parallel()
	b := setup(t, 6, 1, "001_users.sql", users, "002_photos.sql", photos+"\n", "003_mess.sql", "set role none; set session authorization default; select 1; reset role",
		"004_index.sql", disableTx+"set role none; select 1; reset role; create index concurrently users_lower on users (lower(name))")
	host := b.m.Hosts()[0]
	name := b.value(0, "select current_database()")
	login, owner := name+"_login", name+"_owner"
	b.execHost(host, fmt.Sprintf(`create role %[2]s; create role %[1]s login noinherit password 'secret' in role %[2]s; alter role %[1]s set role = %[2]s`, login, owner))
	t.Cleanup(func() {
		drop := fmt.Sprintf("drop owned by %[1]s, %[2]s cascade; drop role %[1]s, %[2]s", login, owner)
		if conn, err := connect(context.Background(), host); err != nil {
			t.Error(err)
		} else if _, err := conn.Exec(context.Background(), drop); err != nil {
			t.Error(err)
		} else {
			_ = conn.Close(context.Background())
		}
	})
	b.execHost(host, fmt.Sprintf("create schema kiloshard authorization %s", owner)) // for the ledger
	for n := range b.m.All().All() {
		b.execHost(host, fmt.Sprintf("alter schema %s owner to %s", b.m.Schema(n), owner))
	}

	cfg := b.m.Config()
	cfg.Hosts = []shards.Host{{Name: host.Name, DSN: localpg.AsRole(host.DSN, login, "secret")}}
	var err error
	if b.cfg.Map, err = cfg.Map(); err != nil {
		t.Fatal(err)
	}
	b.cfg.PerHost = 1
	b.up()
	for n := range b.m.All().All() {
		equal(t, "owners", b.value(n, "select string_agg(distinct tableowner, ',') from pg_tables where schemaname = current_schema()"), owner)
	}
}
