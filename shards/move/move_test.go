package move_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

const fill = `
set search_path = shard_00001, pg_temp;
insert into photos (title, mood, note) select 'photo ' || n, 'glad', '{"a": 1}' from generate_series(1, 1000) n;
insert into likes select id, 1 from photos;
insert into events (what) select 'x' from generate_series(1, 10);`

// preparedOnce prepares statements, and runs each so often that its plan is kept.
const preparedOnce = `
begin; create function pg_temp.write() returns bigint language sql as $$ insert into shard_00001.photos (title) values ('prepared') returning id $$;
set search_path = shard_00001, pg_temp;
prepare writes as insert into shard_00001.photos (title) values ('prepared'); prepare reads as select count(*) from shard_00001.photos;
prepare reads_by_path as select count(*) from photos; prepare next_id as select next_id(); prepare writes_in_function as select pg_temp.write();
commit; begin; execute writes; execute writes; execute reads; execute reads; execute reads_by_path; execute reads_by_path; execute next_id; execute next_id;
execute writes_in_function; execute writes_in_function; rollback`

// A shard arrives with its rows, its sequences, its rights and its comments, and the old place says where it is.
func TestMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`grant usage on schema shard_00001 to pg_monitor; grant select (id, title) on photos to pg_monitor; grant insert on likes to public;
		create sequence risen; create sequence falling increment -2; create sequence round maxvalue 3 cycle; select nextval('risen'), nextval('falling'), nextval('round');
		create sequence unused; create sequence behind start 100; alter sequence behind restart with 50;
		create function twice(x int) returns int language sql as 'select x * 2'; create procedure tidy(inout n int) language sql as 'select 1';
		create function same(a int, out a int) language sql as 'select 1'; create table "o'brien $kiloshard$" (n int);
		create table named ("shard 1 has moved" int primary key, n int default 7); comment on table named is 'not /* inherited */';
		create function text_in(cstring, variadic "any") returns cstring language internal as 'textin'`)
	const rows = `select count(*) || ' ' || sum(hashtext(p::text)) || ' ' || (select count(*) from shard_00001.likes) from shard_00001.photos p`
	stale := b.connect(0)
	defer stale.Close(context.Background())
	if _, err := stale.Exec(t.Context(), preparedOnce); err != nil {
		t.Fatal(err)
	}
	oids := map[string]string{}
	for _, name := range []string{"risen", "falling", "round", "unused", "behind"} {
		oids[name] = b.text(0, "select 'shard_00001."+name+"'::regclass::oid")
	}
	before, last := b.text(0, rows), b.text(0, `select last_value from shard_00001.next_id_seq`)
	report, err := move.Run(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.equal("moved", report.Done.String(), "1")
	b.equal("map", b.load().Host(1).Name, "pg-b")
	b.equal("rows", b.text(1, rows), before)
	b.equal("sequence", b.text(1, `select last_value from shard_00001.next_id_seq`), last)
	b.equal("serial", b.text(1, `insert into shard_00001.events (what) values ('y') returning n`), "11")
	b.equal("comment", b.text(1, `select obj_description('shard_00001.photos'::regclass)`), "what users have made")
	b.equal("version", b.text(1, `select version from shard_00001.schema_version`), "1")
	b.equal("rights", b.text(1, `select has_column_privilege('pg_monitor', 'shard_00001.photos', 'title', 'select') || ' ' || has_table_privilege('pg_monitor', 'shard_00001.photos', 'select')`), "true false")
	b.equal("ledger", b.text(1, `select count(*) from kiloshard.ledger where shard = 1 and current`), b.text(0, `select count(*) from kiloshard.ledger where shard = 1 and current`))
	for _, statement := range []string{
		`select * from shard_00001.photos`, `insert into shard_00001.photos (title) values ('x')`, `update shard_00001.photos set title = 'x'`,
		`delete from shard_00001.likes`, `select shard_00001.next_id()`, `copy shard_00001.events (what) from program 'echo x'`, `select * from shard_00001.glad`,
		`insert into shard_00001.photos (title) values ('x') returning id, mood`, `update shard_00001.photos set title = 'x' where id = 1 returning *`,
		`select count(*) from shard_00001.photos where false`, `select * from shard_00001.photos for update`,
		`insert into shard_00001.likes select 1, 1 where false`, `insert into shard_00001.named values (1, 1)`, `insert into shard_00001.events default values`,
		`insert into shard_00001.likes values (1, 1) on conflict do nothing`, `insert into shard_00001.likes values (1, 1) on conflict (photo, who) do update set who = 2`,
		`select * from shard_00001.next_ids(3)`, `select shard_00001.twice(1)`, `call shard_00001.tidy(1)`,
	} {
		for _, role := range []string{"origin", "replica"} { // as a replica no usual trigger or rule fires
			if err := b.try(0, "set session_replication_role = "+role+"; "+statement); err == nil || !strings.Contains(err.Error(), "shard 1 moved to pg-b at ") {
				t.Errorf("%s as %s: got %v", statement, role, err)
			}
		}
	}
	for name, oid := range oids { // whoever knows it by its OID needs no path
		if err := b.try(0, "select nextval("+oid+"::regclass)"); err == nil || !strings.Contains(err.Error(), "reached maximum value") {
			t.Errorf("sequence %s: got %v", name, err)
		}
	}
	b.equal("values", b.text(1, `set search_path = shard_00001; select concat_ws(' ', nextval('risen'), nextval('falling'), nextval('round'), nextval('unused'), nextval('behind'))`), "2 -3 2 1 50")
	b.equal("replica identity", b.text(0, `select relreplident from pg_class where relname = 'o''brien $kiloshard$' and relkind = 'r'`), "d")
	if err := b.try(0, `copy shard_00001.likes from program 'echo "1	1"'`); err == nil || !strings.Contains(err.Error(), `missing data for column "shard 1 has moved"`) {
		t.Errorf("COPY without a list of columns: got %v", err)
	}
	for _, name := range []string{"writes", "reads", "reads_by_path", "next_id", "writes_in_function"} {
		if _, err := stale.Exec(t.Context(), "execute "+name); err == nil || !strings.Contains(err.Error(), "shard 1 moved to pg-b at ") {
			t.Errorf("prepared before the move, %s: got %v", name, err)
		}
	}
	b.clean()

	cleaned, err := move.Clean(t.Context(), b.m, shards.Set{})
	if err != nil {
		t.Fatal(err)
	}
	b.equal("cleaned", cleaned.Done.String(), "1")
	b.equal("schemas", b.text(0, `select count(*) from pg_namespace where nspname like 'shard_00001%'`), "0")
}
