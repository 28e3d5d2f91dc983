package shardtest_test

import (
	"context"
	"os"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

var migrations = fstest.MapFS{
	"001_photos.sql": {Data: []byte("create table photos (id bigint primary key default next_id(), title text)")},
}

func count(t *testing.T, host shards.Host, query string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), host.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var n int
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestClustersAreReadyAndApart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 3 {
		m := shardtest.New(t, shardtest.Config{Shards: 6, Hosts: 3, Migrations: migrations}).Map
		differences, err := provision.Verify(t.Context(), m)
		if err != nil || len(differences) > 0 {
			t.Fatalf("the cluster is not as its map says: %v, %v", differences, err)
		}
		for _, host := range m.Hosts() {
			if seen[host.ConnString()] {
				t.Errorf("host %s was handed out twice", host)
			}
			seen[host.ConnString()] = true
		}
		host := m.Host(5)
		if n := count(t, host, "with i as (insert into shard_00005.photos (title) values ('x') returning id) select kiloshard.id_shard(id) from i"); n != 5 {
			t.Errorf("the ID is of shard %d, expected 5", n)
		}
		if n := count(t, host, "select count(*) from shard_00005.photos"); n != 1 {
			t.Errorf("%d photos, expected the one of this test", n)
		}
	}
}

func TestHostsAreEmpty(t *testing.T) {
	t.Parallel()
	for _, host := range shardtest.Hosts(t, 2) {
		if n := count(t, host, "select count(*) from pg_namespace where nspname ~ '^(shard|kilo)'"); n != 0 {
			t.Errorf("host %s has %d schemas of ours", host.Name, n)
		}
	}
}

// TestDatabasesAreDropped inspects the server after a test has ended.
func TestDatabasesAreDropped(t *testing.T) {
	t.Parallel()
	var gone string
	t.Run("uses a host", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), shardtest.Hosts(t, 1)[0].ConnString())
		if err != nil {
			t.Fatal(err)
		}
		gone = conn.Config().Database // and leaves the connection open
	})
	host := shardtest.Hosts(t, 1)[0]
	if n := count(t, host, "select count(*) from pg_database where datname = '"+gone+"'"); n != 0 {
		t.Errorf("database %s is still there", gone)
	}
}

// Migrations find the extensions of the config, and clusters with others are made from other templates.
func TestExtensions(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"001_users.sql": {Data: []byte("create extension if not exists citext; create table users (email citext unique)")}}
	for _, schema := range []string{"public", "ext"} {
		c := shardtest.New(t, shardtest.Config{Shards: 2, Hosts: 1, Migrations: files, Extensions: []shards.Extension{{Name: "citext", Schema: schema}}})
		if n := count(t, c.Map.Hosts()[0], "select count(*) from pg_type where oid = to_regtype('"+schema+".citext')"); n != 1 {
			t.Errorf("%d types in schema %s", n, schema)
		}
	}
}
