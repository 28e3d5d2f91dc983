package move_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/sql"
)

// TestSquattedMoves has somebody who may create in the helper schema make the ledger of moves before the first move does.
func TestSquattedMoves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, "create role squatter_of_moves; grant create on schema kiloshard to squatter_of_moves; create schema loot; create table loot.taken (by name)")
	host := b.m.Hosts()[0]
	t.Cleanup(func() {
		conn, err := connectLater(host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.PgConn().Exec(context.Background(), "drop owned by squatter_of_moves cascade; drop role squatter_of_moves").ReadAll(); err != nil {
			t.Error(err)
		}
	})
	b.exec(0, `create function loot.take() returns trigger language plpgsql as 'begin insert into loot.taken values (current_user); return new; end'`)
	// As Kiloshard makes it, and then the owner's, with a trigger.
	b.exec(0, "begin; "+sql.Moves()+"; commit; create trigger grab before insert on kiloshard.moves for each row execute function loot.take(); alter table kiloshard.moves owner to squatter_of_moves; reset search_path")
	_, err := move.Run(t.Context(), b.cfg)
	if err == nil || !strings.Contains(err.Error(), "kiloshard.moves belongs to role squatter_of_moves") {
		t.Errorf("got %v", err)
	}
	b.equal("roles whose rights the trigger had", b.text(0, "select coalesce(string_agg(by, ', '), '') from loot.taken"), "")
}

// TestSwappedMoves has somebody put a view in the place of the ledger of moves while it is waited for.
func TestSwappedMoves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var columns, view []string
	for _, c := range []struct{ name, kind string }{
		{"id", "text"},
		{"shard", "int"},
		{"schema", "name"},
		{"side", "text"},
		{"source", "text"},
		{"target", "text"},
		{"step", "text"},
		{"outcome", "text"},
		{"who", "text"},
		{"began", "timestamptz"},
		{"stepped", "timestamptz"},
		{"fenced", "timestamptz"},
		{"error", "text"},
		{"offline", "boolean"},
		{"back", "jsonb"},
		{"returns", "text"},
		{"split", "text"},
		{"mover", "int"},
	} {
		columns, view = append(columns, c.name+" "+c.kind), append(view, fmt.Sprintf("null::%s as %s", c.kind, c.name))
	}
	var err error
	query := "select " + strings.ReplaceAll(strings.Join(view, ", "), "null::text as side", "case loot.took() when 1 then 'source' end as side")
	taken := pgtest.Swap(t, b.m.Hosts()[0].ConnString(), "kiloshard", "moves", strings.Join(columns, ", "), query, func() { _, err = move.Status(t.Context(), b.m) })
	b.equal("roles whose rights the view had", taken, "")
	if err == nil || !strings.Contains(err.Error(), "expected a plain table") {
		t.Errorf("got %v", err)
	}
}

// TestFenceIsTheMovers holds that a role that only reads the helper schema cannot fence a shard, nor take a fence down.
func TestFenceIsTheMovers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, "begin; "+sql.Moves()+"; commit; grant usage on schema kiloshard to public")
	for _, call := range []string{"fence", "unfence"} {
		err := b.try(0, "set role pg_monitor; select kiloshard."+call+"('0a1b2c3d', 'shard_00000')")
		if err == nil || !strings.Contains(err.Error(), "permission denied for function "+call) {
			t.Errorf("%s by pg_monitor: got %v, expected 42501", call, err)
		}
	}
}

// TestGrantsBehindTheFence holds that a role with rights on a shard has none on the schema behind the fence, and has them again once the fence is down.
func TestGrantsBehindTheFence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const grants = `select coalesce((select string_agg(a.grantee::regrole::text || ' ' || privilege_type || ' ' || is_grantable, ', ' order by a::text)
		from pg_namespace, aclexplode(nspacl) a where nspname = '%s' and a.grantee <> nspowner), '')`
	b.exec(0, `grant usage on schema shard_00001 to pg_monitor; grant create on schema shard_00001 to pg_monitor with grant option; grant usage on schema shard_00001 to pg_read_all_data;
		begin; `+sql.Moves()+`; commit; create schema shard_00001__fence_0a1b2c3d;
		insert into kiloshard.moves (id, shard, schema, side, source, target, step, who, began, stepped)
		values ('0a1b2c3d', 1, 'shard_00001', 'source', 'pg-a', 'pg-b', 'cutover', 'test', now(), now())`)
	before := b.text(0, fmt.Sprintf(grants, "shard_00001"))
	b.exec(0, `select kiloshard.fence('0a1b2c3d', 'shard_00001')`)
	b.equal("grants behind the fence", b.text(0, fmt.Sprintf(grants, "shard_00001__moved_0a1b2c3d")), "")
	err := b.try(0, `set role pg_monitor; select from shard_00001__moved_0a1b2c3d.photos`)
	if err == nil || !strings.Contains(err.Error(), "permission denied for schema shard_00001__moved_0a1b2c3d") {
		t.Errorf("a role with rights on the shard: %v", err)
	}
	b.exec(0, `select kiloshard.unfence('0a1b2c3d', 'shard_00001')`)
	b.equal("grants after the fence", b.text(0, fmt.Sprintf(grants, "shard_00001")), before)
	b.exec(0, `delete from kiloshard.moves; drop schema shard_00001__fence_0a1b2c3d`)
}
