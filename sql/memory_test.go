package sql_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestMemoryOfASession touches 128 shards in one session, which then keeps 21.5 KiB of functions for each on Postgres 15,
// and 21.0 on 18. bench/README.md says what for, and why it is not less. If the engine's expression grows by half as much
// again, a shard takes 8 KiB more.
func TestMemoryOfASession(t *testing.T) {
	t.Parallel()
	const count, most = 128, 23 << 10
	m := shardtest.New(t, shardtest.Config{Shards: count, Hosts: 1}).Map
	conn := connect(t, m)
	const functions = `
		select coalesce(sum(total_bytes), 0)::bigint from pg_catalog.pg_backend_memory_contexts
		where name ~ '^(PL/pgSQL|PLpgSQL|SPI Plan|SQL function|CachedPlan)'`
	const all = `select sum(total_bytes)::bigint from pg_catalog.pg_backend_memory_contexts`
	exec(t, conn, "select shard_00000.next_id()") // warms up what all shards share
	functionsBefore, allBefore := one[int64](t, conn, functions), one[int64](t, conn, all)
	for n := range m.All().All() {
		if _, err := conn.PgConn().Exec(t.Context(), "select "+m.Schema(n)+".next_id()").ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	perShard := (one[int64](t, conn, functions) - functionsBefore) / count
	if perShard > most {
		t.Errorf("a session keeps %d bytes of functions a shard, expected at most %d", perShard, most)
	}
	t.Logf("%d bytes of functions a shard; %d bytes with the caches of tables and sequences", perShard, (one[int64](t, conn, all)-allBefore)/count)
}
