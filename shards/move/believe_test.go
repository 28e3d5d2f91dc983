package move_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/sql"
)

// What one host's ledger says is not done on another one, and no name out of it becomes a statement.
func TestForgedLedger(t *testing.T) {
	t.Parallel()
	const row = `insert into kiloshard.moves (id, shard, schema, side, source, target, step, outcome, who, began, stepped, fenced, sequences) values
		('%s', %d, '%s', 'source', '%s', '%s', '%s', nullif('%s', ''), 'forger', now(), now(), now(), '[{"name": "photos_seq", "last": 1, "increment": 1, "max": 9}]')`
	clean := func(t *testing.T, b *bundle) error {
		_, err := move.Clean(t.Context(), b.m, shards.Set{})
		return err
	}
	resume := func(t *testing.T, b *bundle) error {
		b.cfg.Shards = shards.Set{}
		_, err := move.Resume(t.Context(), b.cfg.Config)
		return err
	}
	abort := func(t *testing.T, b *bundle) error {
		b.cfg.Shards = shards.Set{}
		_, err := move.Abort(t.Context(), b.cfg.Config)
		return err
	}
	tests := []struct {
		name string
		row  string // in the ledger of pg-b
		do   func(*testing.T, *bundle) error
		want string // in the error; empty for none
	}{
		{"statement in the ID", fmt.Sprintf(row, "x; CREATE TABLE public.taken (); --", 0, "shard_00000", "pg-a", "pg-b", "finished", "moved"), clean, `expected 8 hexadecimal digits`},
		{"statement in the schema", fmt.Sprintf(row, "0a0a0a0a", 0, "x; CREATE TABLE public.taken (); --", "pg-a", "pg-b", "finished", "moved"), clean, `expected shard_ and five digits`},
		{"stranger's schema", fmt.Sprintf(row, "0a0a0a0a", 0, "stranger", "pg-a", "pg-b", "finished", "moved"), clean, `schema "stranger" in move 0a0a0a0a of shard 0`},
		{"another shard's schema", fmt.Sprintf(row, "0a0a0a0a", 1, "shard_00000", "pg-a", "pg-b", "finished", "moved"), clean, `expected shard_ and five digits`},
		{"old schema of another host", fmt.Sprintf(row, "0a0a0a0a", 0, "shard_00000", "pg-a", "pg-b", "finished", "moved"), clean, ""},
		{"old schema that another host's ledger keeps", `insert into kiloshard.moves select '0b0b0b0b', 0, 'shard_00000', 'source', 'pg-b', 'pg-a', 'finished', 'cleaned', 'forger', now(), now()`, clean, ""},
		{"move of another host's shard", fmt.Sprintf(row, "0a0a0a0a", 0, "shard_00000", "pg-b", "pg-a", "schema", ""), resume, "expected"},
		{"fenced move of another host's shard", fmt.Sprintf(row, "0a0a0a0a", 0, "shard_00000", "pg-b", "pg-a", "fenced", ""), resume, "expected the same move in both"},
		{"switched move of another host's shard", fmt.Sprintf(row, "0a0a0a0a", 0, "shard_00000", "pg-b", "pg-a", "switched", ""), resume, "expected the same move in both"},
		{"move to take back of another host's shard", fmt.Sprintf(row, "0a0a0a0a", 0, "shard_00000", "pg-b", "pg-a", "copy", ""), abort, "expected"},
		{"host that is none", fmt.Sprintf(row, "0a0a0a0a", 0, "shard_00000", "pg-x", "pg-a", "copy", ""), resume, `from host "pg-x"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for host := range b.m.Hosts() {
				b.exec(host, "begin; "+sql.Moves()+"; commit")
			}
			b.exec(0, `create schema stranger; create table stranger.kept (); create schema stranger__moved_0a0a0a0a; create schema shard_00000__moved_0a0a0a0a;
				insert into shard_00000.photos (title) values ('kept')`)
			if strings.Contains(test.row, "0b0b0b0b") {
				b.exec(0, `alter schema shard_00000__moved_0a0a0a0a rename to shard_00000__moved_0b0b0b0b;
					insert into kiloshard.moves select '0b0b0b0b', 0, 'shard_00000', 'source', 'pg-a', 'pg-b', 'copy', null, 'us', now(), now()`)
			}
			b.exec(1, test.row)
			err := test.do(t, b)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			b.equal("tables made by the row", b.text(0, `select count(*) from pg_class where relname = 'taken'`), "0")
			b.equal("schemas on pg-a", b.text(0, `select string_agg(replace(nspname, '0b', '0a'), ' ' order by nspname) from pg_namespace where nspname ~ 'stranger|__|shard_00000'`),
				"shard_00000 shard_00000__moved_0a0a0a0a stranger stranger__moved_0a0a0a0a")
			b.equal("rows", b.text(0, `select count(*) from shard_00000.photos`), "1")
		})
	}
}
