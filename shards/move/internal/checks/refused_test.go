package checks_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// The checks find rows that the target would refuse, as far as they can.
func TestRefusedRows(t *testing.T) {
	t.Parallel()
	source := connect(t, shardtest.Hosts(t, 1)[0].ConnString(), "search_path", "pg_catalog")
	source.shard()
	source.exec(`insert into shard_00001.photos values (-1, 'x');
		create function shard_00001.ok(n bigint) returns bool language sql immutable as 'select n < 10';
		create function shard_00001.bare(n bigint) returns bool language plpgsql immutable as 'begin return ok(n); end'`)
	const bare = "shard_00001.bare(bigint), which names ok without its schema: the copy would not find it on the target; expected the schema, or a search_path of the function's own"
	for _, tt := range []struct {
		name, change string
		want         []string
	}{
		{"a row that passes", `alter table shard_00001.photos add constraint c check (id < 0) not valid`, nil},
		{"no value", `alter table shard_00001.photos add constraint c check (id < null) not valid`, nil},
		{
			"a row that does not", `alter table shard_00001.photos add constraint "C" check (id > 0) not valid`,
			nil,
		},
		{
			"a domain", `create domain shard_00001.positive as int; alter domain shard_00001.positive add constraint c check (value > 0) not valid`,
			[]string{"note: constraint c of domain positive is NOT VALID, so the target refuses rows with values that violate it and that are changed while it moves: expected none; or --offline"},
		},
		{"a function that names its schema", `alter table shard_00001.photos add constraint c check (shard_00001.ok(id))`, nil},
		{
			"a constraint that calls a function by way of another", `set local search_path = shard_00001; alter table shard_00001.photos add constraint c check (shard_00001.bare(id)); reset search_path`,
			[]string{"note: constraint c on table shard_00001.photos calls " + bare},
		},
		{
			// Without rows: since Postgres 17 CREATE INDEX calls functions with a search_path of pg_catalog only, too.
			"an index", `set local search_path = shard_00001; create table none (id bigint primary key); create index i on none (shard_00001.bare(id)); reset search_path`,
			[]string{"note: index shard_00001.i calls " + bare},
		},
		{
			"a column", `set local search_path = shard_00001; alter table shard_00001.photos add ok bool generated always as (shard_00001.bare(id)) stored; reset search_path`,
			[]string{"note: default value for column ok of table shard_00001.photos calls " + bare},
		},
		{
			"a word that is a table's column", `create function shard_00001.word(ok bigint) returns bool language sql immutable as 'select ok < 10'; alter table shard_00001.photos add constraint c check (shard_00001.word(id))`, nil,
		},
		{
			"a function of an extension", `create function public.fold(t text) returns text language sql immutable as 'select t'; create function public.lower(t bigint) returns text language sql immutable as $$select ''$$;
				alter extension plpgsql add function public.fold(text); alter extension plpgsql add function public.lower(bigint);
				create function shard_00001.folded(t text) returns text language plpgsql immutable as 'begin return fold (lower(t)); end'; create table shard_00001.none (id bigint primary key, title text); create index i on shard_00001.none (shard_00001.folded(title))`,
			[]string{"note: index shard_00001.i calls shard_00001.folded(text), which names fold without its schema: the copy would not find it on the target; expected the schema, or a search_path of the function's own"},
		},
		{
			"a function with a path of its own", `alter function shard_00001.bare(bigint) set search_path = shard_00001; alter table shard_00001.photos add constraint c check (shard_00001.bare(id))`, nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source := session{t, source.Conn}
			source.exec("begin; " + tt.change)
			for _, offline := range []bool{false, true} {
				want := tt.want
				if offline && tt.name == "a domain" { // an offline move locks its values
					want = nil
				}
				equal(t, "source", lines(source.onSource(offline).Found), want...)
			}
			source.exec("rollback")
		})
	}
}
