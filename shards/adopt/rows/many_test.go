package rows_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

// wide has a table with many indexes: with those of all shards it has more than the server's lock table holds.
const wide = `
	create table users (id bigint primary key, name text);
	create table items (id bigserial primary key, user_id bigint not null references users, a int, b int, c int, d int);
	create index on items (user_id); create index on items (a); create index on items (b); create index on items (c); create index on items (d); create index on items (a, b); create index on items (c, d);
	create table parts (id bigserial primary key, item_id bigint not null references items, a int, b int);
	create index on parts (item_id); create index on parts (a); create index on parts (b); create index on parts (a, b);
	insert into users select generate_series(1, 64);
	insert into items (user_id) select 1 + n % 64 from generate_series(1, 256) n;
	insert into parts (item_id) select 1 + n % 256 from generate_series(1, 512) n;
`

// TestManyShards moves rows there and back on a server whose lock table is small for as many shards.
func TestManyShards(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, localpg.Config{Settings: map[string]string{
		"fsync": "off", "shared_buffers": "32MB", "max_locks_per_transaction": "10", "max_connections": "20", "max_worker_processes": "1", "max_wal_senders": "0", "wal_level": "minimal", "autovacuum_max_workers": "1",
	}})
	dsn, err := server.CreateDatabase(t.Context(), "items")
	if err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, shards.Host{Name: "pg-a", DSN: dsn}, 16, wide, "key: public.users.id\nstrategy: {by: modulo}\n")
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Back(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Finish(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	if found := b.run("select count(*) from shard_00007.parts"); found[0] != "32" {
		t.Errorf("shard 7 has %s parts, expected 32", found[0])
	}
}
