package sql_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

// TestGoAndSQLAgree runs the arithmetic of both over random layouts, epochs and IDs.
func TestGoAndSQLAgree(t *testing.T) {
	t.Parallel()
	m, err := shardtest.MapConfig(1, shardtest.Hosts(t, 1)).Map()
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, m)
	rapid.Check(t, func(rt *rapid.T) {
		// So much time that the present fits in, since the engine installs only then.
		layout := shards.Layout{
			Time:  rapid.IntRange(41, 47).Draw(rt, "time bits"),
			Shard: rapid.IntRange(1, 16).Draw(rt, "shard bits"),
		}
		layout.Sequence = rapid.IntRange(1, min(22, 64-layout.Time-layout.Shard)).Draw(rt, "sequence bits")
		epoch := time.UnixMilli(rapid.Int64Range(1.7e12, 1.76e12).Draw(rt, "epoch")).UTC()
		p := sql.Params{
			Cluster: "x", SchemaPrefix: "shard_", Epoch: epoch, End: layout.End(epoch),
			TimeBits: layout.TimeBits(), ShardBits: layout.Shard, SequenceBits: layout.Sequence,
		}
		engine, _ := sql.Engine(p)
		if _, err := conn.Exec(t.Context(), "drop schema if exists kiloshard cascade; "+engine); err != nil {
			rt.Fatal(err)
		}
		for range 5 {
			checkID(rt, conn, layout, epoch)
		}
	})
}

func checkID(t *rapid.T, conn *pgx.Conn, layout shards.Layout, epoch time.Time) {
	parts := shards.Parts{
		Milliseconds: rapid.Int64Range(0, layout.MaxMilliseconds()).Draw(t, "milliseconds"),
		Shard:        shards.Number(rapid.IntRange(0, layout.MaxShards()-1).Draw(t, "shard")),
		Sequence:     rapid.IntRange(0, layout.Slots()-1).Draw(t, "sequence"),
	}
	id, err := layout.Compose(parts)
	if err != nil {
		t.Fatal(err)
	}
	floor, err := layout.Compose(shards.Parts{Milliseconds: parts.Milliseconds})
	if err != nil {
		t.Fatal(err)
	}
	within := rapid.Int64Range(0, 999).Draw(t, "microseconds")
	at := layout.TimeOf(id, epoch)
	const query = `
		select kiloshard.id_time($1), kiloshard.id_shard($1), kiloshard.id_sequence($1), kiloshard.id_floor($2)`
	var (
		gotTime  time.Time
		got      shards.Parts
		gotFloor shards.ID
	)
	err = conn.QueryRow(context.Background(), query, id, at.Add(time.Duration(within)*time.Microsecond)).Scan(&gotTime, &got.Shard, &got.Sequence, &gotFloor)
	if err != nil {
		t.Fatal(err)
	}
	if !gotTime.Equal(at) || got.Shard != parts.Shard || got.Sequence != parts.Sequence || gotFloor != floor {
		t.Fatalf("layout %s, epoch %s, ID %d: SQL says %s, shard %d, slot %d, floor %d; Go says %s, %d, %d, %d",
			layout, epoch, id, gotTime, got.Shard, got.Sequence, gotFloor, at, parts.Shard, parts.Sequence, floor)
	}
}

func TestIDFloorOutsideTheLayout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tests := []struct {
		name, at string
		want     int64
	}{
		{"before the epoch", "2025-12-31 23:59:59.999Z", 0},
		{"the beginning of time", "-infinity", 0},
		{"the epoch", "2026-01-01 00:00:00Z", 0},
		{"a millisecond later", "2026-01-01 00:00:00.001Z", 1 << 23},
		{"the last millisecond", "2060-11-03 19:53:47.775Z", (1<<40 - 1) << 23},
		{"the end", "2060-11-03 19:53:47.776Z", math.MaxInt64},
		{"the end of time", "infinity", math.MaxInt64},
	}
	for _, test := range tests {
		if got := one[int64](t, b.conn, "select kiloshard.id_floor($1::text::timestamptz)", test.at); got != test.want {
			t.Errorf("%s: id_floor(%s) is %d, expected %d", test.name, test.at, got, test.want)
		}
	}
}

// TestIDFloorUsesTheIndex is what it is for: a range scan on the key.
func TestIDFloorUsesTheIndex(t *testing.T) {
	t.Parallel()
	b := setup(t)
	exec(t, b.conn,
		"create table shard_00001.photos (id bigint primary key default shard_00001.next_id())",
		"insert into shard_00001.photos select shard_00001.next_ids(10000)", "analyze shard_00001.photos")
	lines := several[string](t, b.conn, `
		explain select * from shard_00001.photos
		where id >= kiloshard.id_floor(now() + interval '1 hour')`)
	if plan := strings.Join(lines, "\n"); !strings.Contains(plan, "Index Cond: (id >= ") {
		t.Errorf("expected a scan of the index, got\n%s", plan)
	}
}
