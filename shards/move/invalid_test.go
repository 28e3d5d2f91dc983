package move_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/move"
)

// Constraints that were never validated arrive as they are, with the rows that violate them, and still hold for new rows.
func TestNotValid(t *testing.T) {
	t.Parallel()
	const constraints = `select string_agg(concat_ws(' ', conname, convalidated, pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint')), E'\n' order by conname, contypid, conrelid::regclass::text) from pg_constraint where connamespace = 'shard_00001'::regnamespace and not convalidated`
	const rows = `select concat_ws(' ', (select count(*) || ' ' || min(id) from shard_00001.photos), (select count(*) || ' ' || min(n) from shard_00001.fast), (select max(photo) from shard_00001.likes), (select string_agg(s::text, ',' order by n) from shard_00001.sized s))`
	for _, offline := range []bool{false, true} {
		b := setup(t)
		b.exec(0, fill+`insert into photos values (-1, 'before'); alter table photos add constraint "Above" check (id > 0) not valid; comment on constraint "Above" on photos is 'it''s late';
			create unlogged table fast (n int primary key); insert into fast values (-7), (7); alter table fast add constraint above check (n > 0) not valid;
			alter table likes drop constraint likes_photo_fkey; insert into likes values (99, 1); alter table likes add constraint likes_photo_fkey foreign key (photo) references photos not valid;
			create function ok(n int) returns bool language plpgsql immutable as 'begin return n < 10; end';
			create domain size as int; create table sized (n int primary key, s size); insert into sized values (1, -5), (2, 50), (3, null);
			alter domain size add constraint above check (value > 0) not valid; comment on constraint above on domain size is 'sizes'; alter table sized add constraint few check (shard_00001.ok(s::int)) not valid;`)
		want, of := b.text(0, rows), b.text(0, constraints)
		b.cfg.Offline = offline
		if _, err := move.Run(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
		b.equal("rows", b.text(1, rows), want)
		b.equal("constraints", b.text(1, constraints), of)
		if err := b.try(1, `insert into shard_00001.photos values (-2)`); err == nil || !strings.Contains(err.Error(), "Above") {
			t.Errorf("a new row that violates it: %v", err)
		}
		b.clean()
	}
}

// Rows that violate a table's constraint come back; a change of one that violates a domain's could not be applied.
func TestNotValidComesBack(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, `insert into photos values (-1, 'before'); alter table photos add check (id > 0) not valid;`)
	b.exec(1, `update shard_00001.photos set title = 'changed' where title = 'photo 1'; insert into shard_00001.photos values (77, 'new')`)
	want := b.text(1, `select sum(id) || max(title) from shard_00001.photos`)
	if _, err := move.Rollback(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.equal("rows", b.text(0, `select sum(id) || max(title) from shard_00001.photos`), want)
	b.clean()
	b.exec(0, `create domain shard_00001.size as int; alter domain shard_00001.size add constraint above check (value > 0) not valid`)
	b.cfg.Map, b.cfg.RollbackFor = b.load(), time.Hour
	var check *move.CheckError
	if _, err := move.Run(t.Context(), b.cfg); !errors.As(err, &check) || !strings.Contains(err.Error(), "constraint above of domain size is NOT VALID, so there is no way back") {
		t.Errorf("got %v", err)
	}
}
