package prove_test

import (
	"fmt"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/move"
)

// Services are behind PgBouncer, and the mover is not: no call fails while a shard moves to and fro.
//
// The clock of the host that the shard comes to is 10 min behind all IDs of the shard, as that of a host would be whose clock is
// as far behind the other's. IDs go on rising, which the callers look at.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	c := start(t, map[string]localpg.Config{})
	services := c.open(c.throughPgBouncer())
	w := c.callersOf(services, 1)
	for range 2 {
		from, to := c.home()
		const seconds = 600
		c.exec(from, fmt.Sprintf(`select setval('shard_00001.next_id_seq', last_value + %d * 1000 * 1024) from shard_00001.next_id_seq`, seconds))
		w.some()
		if _, err := move.Run(t.Context(), c.config(from, to)); err != nil {
			t.Fatal(err)
		}
		w.some()
		c.whole(to)
		w.check(to)
		c.clean()
		behind := c.text(to, fmt.Sprintf(`select kiloshard.id_time(shard_00001.next_id()) > clock_timestamp() + interval '%d s'`, seconds/2))
		if behind != "t" {
			t.Errorf("the clock of %s is not behind its IDs: the test proves nothing", to)
		}
	}
}

// throughPgBouncer starts one for each host, and returns the DSNs of hosts that lead through it.
func (c *cluster) throughPgBouncer() func(name string) string {
	c.t.Helper()
	dsns := map[string]string{"store": c.directly("store")}
	for _, name := range []string{"pg-a", "pg-b"} {
		bouncer := pgtest.StartPgBouncer(c.t, localpg.PgBouncerConfig{DSN: c.servers[name].DSN("postgres")})
		dsns[name] = bouncer.DSN(database)
	}
	return func(name string) string { return dsns[name] }
}
