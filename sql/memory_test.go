package sql_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestMemoryOfASession touches 4096 shards in one session. Of each function that the session has called Postgres 15 keeps
// 21.5 KB: 8 KB for the PL/pgSQL function, of which 3.5 are used; 8 KB for the plan with the engine in line, of which 5.7
// are used; 4 KB for the statement and its analyzed form; 1 KB for SPI. Blocks double in size, so a shard would take less
// only if the plan fit into 4 KB. The least that the plan's 9 operators, 8 calls and 12 constants take is more, also when
// the ID is put together by (nextval >> 10) * 8387584 + currval + shard * 1024, an operator and a constant less. If it
// grows by half as much again, it takes 8 KB more.
func TestMemoryOfASession(t *testing.T) {
	t.Parallel()
	const count, most = 4096, 22 << 10
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
