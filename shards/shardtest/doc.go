// Package shardtest gives a test a sharded cluster on a real Postgres:
//
//	func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }
//
//	func TestPhotos(t *testing.T) {
//		t.Parallel()
//		cluster := shardtest.New(t, shardtest.Config{Shards: 16, Migrations: os.DirFS("../migrations")})
//		r, err := router.New(t.Context(), router.Config{Map: cluster.Map})
//		…
//	}
//
// One Postgres server serves all tests of a package. The first test that needs it starts it, and
// [Run] stops it. A host of a cluster is a database on it. The shards are created and migrated once
// for each [Config], in template databases, which are then cloned for every test. That takes a
// fraction of a second, however many migrations there are.
//
// These environment variables choose the server:
//
//	KILOSHARD_POSTGRES_DSN    a server on which databases may be created
//	KILOSHARD_TEST_POSTGRES   local (server binaries), docker or download; else the first available
//	KILOSHARD_POSTGRES_IMAGE  the container's image; defaults to postgres:17
//	KILOSHARD_POSTGRES_DIR    where servers keep their data; defaults to /dev/shm where it has 8 GiB free; for containers by root only
//	KILOSHARD_KEEP            1: keep the databases of failed tests and the server, and print how to reach them
//
// The server runs with fsync off. A test that kills its server starts one with [OwnServer].
package shardtest
