package sql_test

import (
	"context"
	"fmt"
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

// layouts draws layouts that the engine installs: with a time, with so much of it that the present
// fits in.
func layouts() *rapid.Generator[shards.Layout] {
	return rapid.Custom(func(t *rapid.T) shards.Layout {
		var l shards.Layout
		l.Shard = rapid.IntRange(1, 16).Draw(t, "shard bits")
		if rapid.Bool().Draw(t, "time") {
			l.Time = rapid.IntRange(41, min(47, 62-l.Shard)).Draw(t, "time bits")
			l.Type = rapid.IntRange(0, min(16, 63-l.Time-l.Shard)).Draw(t, "type bits")
			l.Sequence = rapid.IntRange(1, min(22, 64-l.Time-l.Shard-l.Type)).Draw(t, "sequence bits")
			return l
		}
		l.Type = rapid.IntRange(0, 16).Draw(t, "type bits")
		l.Sequence = rapid.IntRange(2, min(48, 63-l.Shard-l.Type)).Draw(t, "sequence bits")
		return l
	})
}

// TestGoAndSQLAgree runs the arithmetic of both over random layouts, epochs and IDs, and the engine's
// own.
func TestGoAndSQLAgree(t *testing.T) {
	t.Parallel()
	m, err := shardtest.MapConfig(1, shardtest.Hosts(t, 1)).Map()
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, m)
	rapid.Check(t, func(rt *rapid.T) {
		layout := layouts().Draw(rt, "layout")
		if err := layout.Validate(); err != nil {
			rt.Fatal(err)
		}
		epoch := time.UnixMilli(rapid.Int64Range(1.7e12, 1.76e12).Draw(rt, "epoch")).UTC()
		number := rapid.IntRange(0, layout.MaxShards()-1).Draw(rt, "shard")
		schema := fmt.Sprintf("shard_%05d", number)
		p := sql.Params{
			Cluster: "x", SchemaPrefix: "shard_", Epoch: epoch, End: layout.End(epoch),
			TimeBits: layout.TimeBits(), ShardBits: layout.Shard, TypeBits: layout.Type, SequenceBits: layout.Sequence,
		}
		engine, _ := sql.Engine(p)
		script := "drop schema if exists kiloshard cascade; " + engine + sql.Shard(p, number, schema)
		if _, err := conn.Exec(t.Context(), script); err != nil {
			rt.Fatal(err)
		}
		for range 4 {
			checkParts(rt, conn, layout, epoch)
		}
		checkNextID(rt, conn, layout, epoch, shards.Number(number), schema)
		if _, err := conn.Exec(t.Context(), "drop schema "+schema+" cascade"); err != nil {
			rt.Fatal(err)
		}
	})
}

// checkParts composes an ID and has the functions of SQL take it apart.
func checkParts(t *rapid.T, conn *pgx.Conn, layout shards.Layout, epoch time.Time) {
	want := shards.Parts{
		Milliseconds: rapid.Int64Range(0, layout.MaxMilliseconds()).Draw(t, "milliseconds"),
		Shard:        shards.Number(rapid.IntRange(0, layout.MaxShards()-1).Draw(t, "shard")),
		Type:         rapid.IntRange(0, layout.MaxTypes()-1).Draw(t, "type"),
		Sequence:     rapid.Int64Range(0, layout.MaxSequence()).Draw(t, "sequence"),
	}
	id, err := layout.Compose(want)
	if err != nil {
		t.Fatal(err)
	}
	typ := "kiloshard.id_type($1)"
	if layout.Type == 0 {
		typ = "0"
	}
	within := time.Duration(rapid.Int64Range(0, 999).Draw(t, "microseconds")) * time.Microsecond
	at := layout.TimeOf(id, epoch)
	query := `select kiloshard.id_time($1), kiloshard.id_shard($1), ` + typ + `, kiloshard.id_sequence($1)::bigint, kiloshard.id_floor($2)`
	var (
		gotTime  *time.Time
		got      shards.Parts
		gotFloor *shards.ID
	)
	if err := conn.QueryRow(context.Background(), query, id, at.Add(within)).Scan(&gotTime, &got.Shard, &got.Type, &got.Sequence, &gotFloor); err != nil {
		t.Fatal(err)
	}
	got.Milliseconds = want.Milliseconds // what follows compares the moments
	if got != want {
		t.Fatalf("layout %s, ID %d: SQL says %+v, expected %+v", layout, id, got, want)
	}
	if !layout.HasTime() {
		if gotTime != nil || gotFloor != nil {
			t.Fatalf("layout %s: got time %v, floor %v, expected none", layout, gotTime, gotFloor)
		}
		return
	}
	floor, err := layout.Compose(shards.Parts{Milliseconds: want.Milliseconds})
	if err != nil {
		t.Fatal(err)
	}
	if gotTime == nil || !gotTime.Equal(at) || gotFloor == nil || *gotFloor != floor {
		t.Fatalf("layout %s, epoch %s, ID %d: SQL says %v, floor %v; Go says %s, %d", layout, epoch, id, gotTime, gotFloor, at, floor)
	}
}

// checkNextID makes IDs and takes them apart in Go.
func checkNextID(t *rapid.T, conn *pgx.Conn, layout shards.Layout, epoch time.Time, number shards.Number, schema string) {
	typ, call := 0, schema+".next_id()"
	if layout.Type > 0 {
		typ = rapid.IntRange(0, layout.MaxTypes()-1).Draw(t, "type")
		call = fmt.Sprintf("%[1]s.next_id('%[1]s.next_id_seq'::regclass, %[2]d)", schema, typ)
	}
	var id, plain, several shards.ID
	query := "select " + call + ", " + schema + ".next_id(), (select max(id) from " + schema + ".next_ids(1) as id)"
	before := time.Now()
	if err := conn.QueryRow(context.Background(), query).Scan(&id, &plain, &several); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	for _, made := range []struct {
		id  shards.ID
		typ int
	}{{id, typ}, {plain, 0}, {several, 0}} {
		if parts := layout.Parts(made.id); made.id < 0 || parts.Shard != number || parts.Type != made.typ {
			t.Fatalf("layout %s: ID %d has %+v, expected shard %d and type %d", layout, made.id, parts, number, made.typ)
		}
	}
	if !layout.HasTime() {
		if got := layout.Parts(id); got.Milliseconds != 0 || got.Sequence != 1 {
			t.Fatalf("layout %s: the first ID has %+v", layout, got)
		}
		return
	}
	const slack = 30 * time.Millisecond
	if at := layout.TimeOf(id, epoch); at.Before(before.Add(-slack)) || at.After(after.Add(slack)) {
		t.Fatalf("layout %s: ID %d says %s, expected %s to %s", layout, id, at, before, after)
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
