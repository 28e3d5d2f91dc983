package move_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// naming is a table of all types that name something by its OID, and of those that mean something only in their own database, alone and in
// other types. The names are those of what the shard has.
const naming = `
	create type pair as (t regclass, n int); create domain kin as regtype; create domain kins as kin[]; create type span as range (subtype = regclass);
	create domain relation as regclass not null; create function twice(n int, m mood) returns int language sql as 'select n';
	create table naming (t relation primary key, ts regclass[], ty regtype, kin kin, kins kins, p pair, ps pair[], s span, ms span_multirange, f regprocedure, f1 regproc, op regoperator, op1 regoper,
		words regconfig, word regdictionary, plain regcollation, r regrole, rs regrole[], acl aclitem[], o oid, x xid, x8 xid8, at pg_lsn, place tid, sn pg_snapshot);
	create table whole (t regclass, p pair); alter table whole replica identity full;
	insert into whole values ('photos', '(photos,1)'), ('likes', null), ('naming', '(,2)');`

// named inserts a row into that table.
func named(t string) string {
	return `set search_path = shard_00001, pg_temp; insert into naming values ('` + t + `', '{photos,likes,"glad",pg_class,NULL}', 'mood', 'photos', '{mood,"mood[]",integer}', '(likes,7)', '{"(photos,1)","(,2)"}', '[photos,photos]', '{[photos,photos]}',
		'twice(int,mood)', 'twice', '=(int,int)', 'pg_catalog.^@', 'english', 'simple', '"C"', current_user::regrole, array[current_user::regrole], array[makeaclitem(current_user::regrole, current_user::regrole, 'SELECT', false)],
		7, '7', '77', '0/7', '(7,7)', '10:20:10,14');`
}

// What names something of the shard names it on the new host, and again on the old one after a rollback, also what was written before the
// move and since.
func TestNames(t *testing.T) {
	t.Parallel()
	const read = `set search_path = shard_00001, pg_temp; select concat_ws(E'\n', (select string_agg(n::text, E'\n' order by t::text) from naming n), (select string_agg(w::text, E'\n' order by w::text) from whole w))`
	b := setup(t)
	b.exec(0, fill+naming+named("photos")+named("likes"))
	want := b.text(0, read)
	b.cfg.RollbackFor = time.Hour
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.cfg.Map = b.load()
	b.equal("moved", b.text(1, read), want)
	if _, err := move.Verify(t.Context(), b.cfg.Config); err != nil {
		t.Error(err)
	}
	b.exec(1, named("events")+`update naming set p = '(events,8)', ts = '{events_pkey,next_id_seq}' where t = 'photos'::regclass; update naming set t = 'naming' where t = 'likes'::regclass;
		update whole set t = 'events' where t = 'photos'::regclass; delete from whole where t in ('likes'::regclass, 'naming'::regclass); insert into whole values ('glad', '(events,2)')`)
	want = b.text(1, read)
	b.cfg.VerifyUnderFence, b.cfg.Rate = 1, 1e9 // it is compared as a large one
	if _, err := move.Rollback(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.equal("rolled back", b.text(0, read), want)
	b.served("pg-a", "after the rollback")
	b.clean()
}

// What cannot be carried is named before anything is done, by a plan too.
func TestNamesThatCannotBeCarried(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, before string
		back         bool
		want         string // no problem if it is empty
	}{
		{"a table elsewhere", `create table public.mine (); create table a (t regclass[]); insert into a values ('{public.mine}')`, false, `pg-b: column t of a has the regclass public.mine, which the target does not have`},
		{"a table elsewhere, in a composite", `create table public.mine (); create type pair as (n int, t regclass); create table a (p pair[]); insert into a values (array[(1, 'public.mine')::pair])`, false, `column p of a has the regclass public.mine`},
		{"one of many", `create table a (t regclass); insert into a select c.oid::regclass from pg_class c where c.relnamespace = 'pg_catalog'::regnamespace and c.relkind in ('r', 'i'); create table public.zz (); insert into a values ('public.zz')`, false, `column t of a has the regclass public.zz, which`},
		{"an index", `create table a (t regclass); insert into a values ('photos_title_idx'), (null), (0)`, false, `column t of a has the regclass shard_00001.photos_title_idx, which a move makes after the rows: expected none`},
		{"the sequence of IDs", `create table a (t regclass); insert into a values ('next_id_seq')`, false, `column t of a has the regclass shard_00001.next_id_seq`},
		{"a function of two", `create table a (f regproc[]); insert into a select array['shard_00001.next_id()'::regprocedure::oid::regproc]`, false, `column f of a has the regproc shard_00001.next_id, the name of several functions`},
		{"of Postgres's own, and of nothing", `create table a (t regclass); insert into a values (1255), (4294967295)`, false, ``},
		{"a schema", `create table a (n regnamespace); insert into a values ('shard_00001')`, false, ``},
		{"a schema, with a way back", `create table a (id int primary key, n regnamespace[])`, true, `column n of a is of type regnamespace[], whose values name the shard's schema, so there is no way back for it: expected another type, or a move without --rollback-for`},
		{"a name of Postgres's own, with a way back", `create table pg_am (id int primary key); create table a (id int primary key, t regclass)`, true, `pg_am has the name of one of Postgres's own`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(0, fill+tt.before)
			if tt.back {
				b.cfg.RollbackFor = time.Hour
			}
			plans, err := move.Plan(t.Context(), b.cfg)
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(plans[0].Problems, "; ")
			if (tt.want == "") != (problems == "") || !strings.Contains(problems, tt.want) {
				t.Errorf("planned: got %q, expected %q", problems, tt.want)
			}
			_, err = move.Run(t.Context(), b.cfg)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				b.cfg.Map = b.load()
				if _, err := move.Verify(t.Context(), b.cfg.Config); err != nil {
					t.Error(err)
				}
				return
			}
			var check *move.CheckError
			if !errors.As(err, &check) {
				t.Errorf("moved: got %v", err)
			}
			b.served("pg-a", "the refusal")
		})
	}
}

// A row that is written while its shard moves, and names what the target lacks, is named. Once the target has that, the move can go on, and else
// it can be taken back.
func TestNamedSince(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`create table named (n int primary key, t regclass)`)
	tell, done := b.cfg.Events, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		if point(e) == "copy: copied" && !done {
			done = true
			b.exec(0, `create table public.mine (); insert into shard_00001.named values (1, 'public.mine')`)
		}
	}
	const want = "column t of named has the regclass public.mine, which the target does not have"
	if _, err := move.Run(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("moved: got %v", err)
	}
	b.served("pg-a", "the refusal")
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.clean()
	done = false
	b.exec(0, `delete from shard_00001.named; drop table public.mine`)
	if _, err := move.Run(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("moved again: got %v", err)
	}
	b.exec(1, `create table public.mine ()`)
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.equal("named", b.text(1, `select t from shard_00001.named`), "mine")
	b.clean()
}
