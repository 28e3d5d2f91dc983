package snapshot_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
)

// TestBeyond is what files leave in a shard that its structure does not show: a shard made from a snapshot would lack it.
func TestBeyond(t *testing.T) {
	t.Parallel()
	const tables = `create table users (id bigserial primary key, name text); create table of_{{.shard}} (id int); create sequence s start 5;
		create function f() returns int language sql return 1; create type mood as enum ('a'); create table p (id int) partition by range (id); create table p_1 partition of p default; `
	for _, tt := range []struct{ name, migration, want string }{
		{"nothing", `update users set name = 'x'; delete from users; insert into users select * from users; truncate users; do $$ begin perform 1; end $$; alter sequence s restart; create temp table x as select 1`, ""},
		{"a row", `insert into users (id) values (1)`, "has rows in table users"},
		{"a row of a partition", `insert into p values (1)`, "has rows in table p_1"},
		{"a row of a table with the shard's number", `insert into of_{{.shard}} values (1)`, "has rows in table of_13"},
		{"rows of CREATE TABLE AS", `create table copied as select 1 as n`, "has rows in table copied"},
		{"a row of a block", `do $$ begin insert into users (id) values (1); end $$`, "has rows in table users"},
		{"a value of a sequence", `select nextval('s')`, "has values of sequence s"},
		{"a sequence that was set", `select setval('s', 9, false)`, "has values of sequence s"},
		{"a sequence that restarts elsewhere", `alter sequence users_id_seq restart with 100`, "has values of sequence users_id_seq"},
		{"an owner", `alter table users owner to pg_monitor`, "has sequence users_id_seq of role pg_monitor"},
		{"an owner of a function", `alter function f() owner to pg_monitor`, "has function f() of role pg_monitor"},
		{"an owner by a role", `grant create, usage on schema {{.schema}} to pg_monitor; set role pg_monitor; create type other as enum (); reset role`, "has the schema granted to pg_monitor (CREATE, USAGE); type other of role pg_monitor"},
		{"rights", `grant select, insert on users to pg_monitor with grant option`, "has table users granted to pg_monitor (INSERT with grant option, SELECT with grant option)"},
		{"rights to a column", `grant update (name) on users to public`, "has column name of table users granted to public (UPDATE)"},
		{"rights that are taken away", `revoke all on function f() from public`, "lacks function f() granted to public (EXECUTE)"},
		{"rights to later tables", `alter default privileges in schema {{.schema}} grant select on tables to pg_monitor`, "has new objects of kind r granted to pg_monitor (SELECT)"},
		{"rights to a type", `revoke usage on type mood from public`, "lacks type mood granted to public (USAGE)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := migrated(t, tables+tt.migration, 12, 13)
			s, err := snapshot.Take(t.Context(), m, 13, 12)
			if err != nil {
				t.Fatal(err)
			}
			err = s.Check(t.Context(), 2)
			var beyond *snapshot.BeyondError
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.As(err, &beyond) || !strings.Contains(err.Error(), "shard 13 "+tt.want) || slices.ContainsFunc(beyond.Has, func(s string) bool { return strings.Contains(s, "shard_") })):
				t.Errorf("got %v, expected shard 13 %s", err, tt.want)
			}
		})
	}
}
