package prove_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// What is known to keep a standby from being promoted is refused by name, and nothing is changed.
func TestPromoteIsRefused(t *testing.T) {
	t.Parallel()
	c := startPair(t)
	refused := func(what, want string, change func(cfg *move.PromoteConfig)) {
		t.Helper()
		cfg := c.promotion()
		change(&cfg)
		var problems *move.CheckError
		plan, err := move.PlanPromotion(t.Context(), cfg)
		if err != nil || !strings.Contains(strings.Join(plan.Problems, "; "), want) {
			t.Errorf("%s: the plan has %q, %v, expected %s", what, plan.Problems, err, want)
		}
		if _, err := move.Promote(t.Context(), cfg); !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %s", what, err, want)
		}
	}
	plan, err := move.PlanPromotion(t.Context(), c.promotion())
	if err != nil || len(plan.Problems) > 0 || plan.Leave.String() != "1,3" || plan.Stay.String() != "0,2" {
		t.Errorf("got %+v, %v", plan, err)
	}
	as := func(change func(*shards.Config)) func(*move.PromoteConfig) {
		return func(cfg *move.PromoteConfig) {
			config := cfg.Map.Config()
			change(&config)
			m, err := config.Map()
			if err != nil {
				t.Fatal(err)
			}
			cfg.Map = m
		}
	}
	refused("replica", "pg-b: it is replica 0 of pg-a in the map", as(func(config *shards.Config) {
		config.Hosts[0].DSN, config.Hosts[1].DSN = c.directly("pg-a"), c.directly("pg-b")
		config.Hosts[0].Replicas = []string{c.throughLinks("pg-b")}
	}))
	refused("primary", "pg-b: the server takes writes: expected a physical standby of pg-a", as(func(config *shards.Config) {
		config.Hosts[0].DSN, config.Hosts[1].DSN = c.directly("pg-a"), c.throughLinks("pg-a")
	}))
	refused("another server", "pg-b: it has the data of another server or database than pg-a", as(func(config *shards.Config) {
		config.Hosts[0].DSN, config.Hosts[1].DSN = c.directly("pg-a"), c.directly("store")
	}))
	refused("standby as source", "pg-a: the server is a standby: expected a primary", as(func(config *shards.Config) {
		config.Hosts[0].DSN, config.Hosts[1].DSN = c.directly("pg-b"), c.directly("pg-a")
	}))
	refused("shards there", "pg-b: the map has 1 shards on it", func(cfg *move.PromoteConfig) {
		as(func(config *shards.Config) {
			config.Placement = []shards.Placement{{Host: "pg-a", Shards: shards.SetOf(0, 1, 3)}, {Host: "pg-b", Shards: shards.SetOf(2)}}
		})(cfg)
	})
	refused("generators", "pg-b: generator invoice would be on both hosts", as(func(config *shards.Config) {
		config.Generators = []shards.Generator{{Kind: shards.Row, Names: []string{"invoice"}, Hosts: []string{"pg-a"}}}
	}))
	c.exec("pg-a", `revoke execute on function pg_promote from photos_owner`)
	c.eventually(func() string { return "it may be promoted" }, func() bool {
		return c.text("pg-b", `select has_function_privilege('photos_owner', 'pg_promote(boolean, integer)', 'execute')`) == "f"
	})
	refused("promotion", "pg-b: role photos_owner may not promote it: expected a superuser, or GRANT EXECUTE ON FUNCTION pg_promote TO photos_owner", func(*move.PromoteConfig) {})
	c.exec("pg-a", `grant execute on function pg_promote to photos_owner; revoke pg_read_all_stats from photos_owner`)
	refused("statistics", "pg-a: role photos_owner does not see standbys: expected pg_read_all_stats", func(*move.PromoteConfig) {})
	c.exec("pg-a", `grant pg_read_all_stats to photos_owner`)
	c.exec("pg-a", `alter table shard_00001.events set unlogged`)
	refused("unlogged", "pg-a: shard_00001.events is unlogged, so it is empty on a standby", func(*move.PromoteConfig) {})
	c.exec("pg-a", `alter table shard_00001.events set logged`)
	c.exec("pg-b", `select pg_wal_replay_pause()`)
	refused("paused", "pg-b: its replay is paused: expected pg_wal_replay_resume()", func(*move.PromoteConfig) {})
	c.exec("pg-b", `select pg_wal_replay_resume()`)

	c.exec("pg-a", `alter system set synchronous_standby_names = 'standby'`)
	c.exec("pg-a", `select pg_reload_conf()`)
	c.eventually(func() string { return "it is not synchronous" }, func() bool {
		return c.text("pg-a", `select sync_state from pg_stat_replication where application_name = 'standby'`) == "sync"
	})
	refused("synchronous", "pg-a: commits wait for standby standby, and would for ever", func(*move.PromoteConfig) {})
	c.exec("pg-a", `alter system reset synchronous_standby_names`)
	c.exec("pg-a", `select pg_reload_conf()`)

	c.exec("pg-a", `insert into kiloshard.moves (id, shard, schema, side, source, target, step, outcome, who, began, stepped)
		values ('00000000', 2, 'shard_00002', 'source', 'pg-a', 'pg-c', 'finished', 'moved', 'test', now(), now())`)
	refused("an old schema", "pg-a: 1 old schemas of shards that have moved are there", func(*move.PromoteConfig) {})
	c.exec("pg-a", `update kiloshard.moves set outcome = null, step = 'copy'`)
	refused("another move", "pg-a: the move of shard 2 from pg-a to pg-c is under way", func(*move.PromoteConfig) {})
	c.exec("pg-a", `delete from kiloshard.moves`)
	c.served("pg-a")
}
