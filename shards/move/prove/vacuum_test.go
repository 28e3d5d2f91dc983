package prove_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// An autovacuum that takes minutes holds up neither the move nor, while the move waits for it, anybody else.
func TestAutovacuum(t *testing.T) {
	t.Parallel()
	c := start(t, map[string]localpg.Config{"pg-a": {Settings: map[string]string{"autovacuum": "on", "autovacuum_naptime": "1s"}}})
	c.exec("pg-a", `set search_path = shard_00001, pg_temp;
		create table slow (n int primary key, what text) with (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1, autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0);
		insert into slow select n, repeat('x', 500) from generate_series(1, 10000) n; delete from slow where n % 2 = 0`)
	cfg := c.config("pg-a", "pg-b")
	cfg.RetryLimit = waitTime
	tell := cfg.Events
	cfg.Events = func(e progress.Event) {
		tell(e)
		if point(e) == "copy: copied" {
			c.eventually(func() string { return "no autovacuum" }, func() bool {
				return c.text("pg-a", `select count(*) from pg_locks l join pg_stat_activity a using (pid) where l.relation = 'shard_00001.slow'::regclass and a.backend_type = 'autovacuum worker'`) != "0"
			})
		}
	}
	w := c.callers()
	if _, err := move.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	w.some()
	c.whole("pg-b")
	w.check("pg-b")
}
