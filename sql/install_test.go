package sql_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	identity "github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

// everyFunction tells apart the functions that are there and the transactions that made them.
const everyFunction = `
	select string_agg(p.oid::text || ' ' || p.xmin::text, ',' order by p.oid)
	from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
	where n.nspname ~ '^(kiloshard|shard_)'`

func TestInstallingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := one[string](t, b.conn, everyFunction)
	report, err := provision.Create(t.Context(), provision.CreateConfig{Map: b.m})
	if err != nil || report.Created.Len() != 0 || report.Existed.Len() != 8 {
		t.Fatalf("got %+v, %v, expected 8 shards that existed", report, err)
	}
	if after := one[string](t, b.conn, everyFunction); after != before {
		t.Errorf("functions were replaced")
	}
}

func TestScriptsRunTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := one[shards.ID](t, b.conn, "select shard_00003.next_id()")
	params := params(b.m)
	engine, _ := sql.Engine(params)
	exec(t, b.conn, engine, sql.Shard(params, 3, "shard_00003"))
	if next := one[shards.ID](t, b.conn, "select shard_00003.next_id()"); next <= id {
		t.Errorf("after installing over itself got ID %d, before it %d", next, id)
	}
}

func params(m *shards.Map) sql.Params {
	c := m.Config()
	return sql.Params{
		Cluster: c.Cluster, SchemaPrefix: c.SchemaPrefix, Epoch: c.Epoch, End: c.Layout.End(c.Epoch),
		TimeBits: c.Layout.TimeBits(), ShardBits: c.Layout.Shard, TypeBits: c.Layout.Type, SequenceBits: c.Layout.Sequence,
	}
}

func TestRefusesToChangeTheMeaningOfIDs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*shards.Config)
	}{
		{"another epoch", func(c *shards.Config) { c.Epoch = c.Epoch.Add(time.Hour) }},
		{"another layout", func(c *shards.Config) { c.Layout = shards.Layout{Time: 41, Shard: 12, Sequence: 10} }},
		{"bits of type", func(c *shards.Config) { c.Layout = shards.Layout{Time: 40, Shard: 13, Type: 1, Sequence: 10} }},
		{"no time", func(c *shards.Config) { c.Layout = shards.Layout{Shard: 13, Sequence: 10} }},
		{"another cluster", func(c *shards.Config) { c.Cluster = "other" }},
		{"another prefix", func(c *shards.Config) { c.SchemaPrefix = "s" }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			before := one[string](t, b.conn, everyFunction)
			c := b.m.Config()
			test.change(&c)
			m, err := c.Map()
			if err != nil {
				t.Fatal(err)
			}
			engine, _ := sql.Engine(params(m))
			refused(t, connect(t, m), sql.Refused, engine)
			_, err = provision.Create(t.Context(), provision.CreateConfig{Map: m})
			if other := (*identity.IdentityError)(nil); !errors.As(err, &other) {
				t.Errorf("create: got %v, expected it to say whose shards these are", err)
			}
			if after := one[string](t, b.conn, everyFunction); after != before {
				t.Errorf("functions were changed anyway")
			}
		})
	}
}

func TestEpochMayChangeBeforeThereAreShards(t *testing.T) {
	t.Parallel()
	c := shardtest.MapConfig(8, shardtest.Hosts(t, 1))
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, m)
	engine, _ := sql.Engine(params(m))
	exec(t, conn, engine)
	c.Epoch = c.Epoch.Add(time.Hour)
	if m, err = c.Map(); err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	checkNear(t, m, one[shards.ID](t, conn, "select shard_00001.next_id()"), before, time.Now())
}

func TestRefusesAClockOutsideTheLayout(t *testing.T) {
	t.Parallel()
	for name, epoch := range map[string]time.Time{
		"before the epoch": time.Now().Add(time.Hour).Truncate(time.Second),
		"after the end":    time.Date(1985, 1, 1, 0, 0, 0, 0, time.UTC), // 41 usable bits
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shardtest.MapConfig(8, shardtest.Hosts(t, 1))
			p := sql.Params{Cluster: "x", SchemaPrefix: "shard_", Epoch: epoch, TimeBits: 40, ShardBits: 13, SequenceBits: 10}
			p.End = shards.DefaultLayout.End(epoch)
			m, err := c.Map()
			if err != nil {
				t.Fatal(err)
			}
			engine, _ := sql.Engine(p)
			refused(t, connect(t, m), sql.Refused, engine)
		})
	}
}

func TestClusterNameIsQuoted(t *testing.T) {
	t.Parallel()
	m, err := shardtest.MapConfig(1, shardtest.Hosts(t, 1)).Map()
	if err != nil {
		t.Fatal(err)
	}
	p := params(m)
	p.Cluster = `it's a "test" \' of 100 %`
	engine, _ := sql.Engine(p)
	conn := connect(t, m)
	exec(t, conn, engine)
	if got := one[string](t, conn, "select cluster from kiloshard.settings"); got != p.Cluster {
		t.Errorf("got %q, expected %q", got, p.Cluster)
	}
}
