package migrate_test

import (
	"errors"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
)

func TestOnlyStructure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		sql  string
		only bool
	}{
		{"", true},
		{"create table users (id bigint primary key default next_id(), n int generated always as (1) stored)", true},
		{"create unlogged table if not exists a ()", true},
		{"create unique index concurrently i on a (id)", true},
		{"create or replace view v as select 1; create materialized view w as table v; create recursive view r (n) as values (1)", true},
		{"create function f() returns void language sql as 'insert into a values (1)'; drop function f()", true},
		{"create constraint trigger t after insert on a for each row execute function f()", true},
		{"alter table a add column select_ int; alter type t add value 'x'; drop index i; alter sequence s owned by a.n", true},
		{"comment on table a is 'insert'; -- update\n/* delete */", true},
		{"set local lock_timeout = '1s'; set statement_timeout = 0", true},
		{"create policy p on a; create rule r as on insert to a do instead delete from b; create statistics s on a, b from c", true},

		{"create table a (t text default 'as select'); alter table a add check (t <> 'owner to restart') -- restart", true},

		{"create table a (id int); insert into a values (1)", false},
		{"update a set id = 1", false},
		{"delete from a", false},
		{"truncate a", false},
		{"merge into a using b on true when matched then delete", false},
		{"with x as (insert into a values (1) returning id) select * from x", false},
		{"copy a from '/tmp/x'", false},
		{"select setval('s', 10)", false},
		{"(select setval('s', 10))", false},
		{"do $$ begin end $$", false},
		{"call p()", false},
		{"create table a as select 1", false},
		{"create table a (n) as (with x as (select 1) select * from x)", false},
		{"create table a as table b", false},
		{"create table a as execute p", false},
		{"select 1 into a", false},
		{"alter sequence s restart with 100", false},
		{"alter table a alter column id restart", false},
		{"alter table a owner to someone", false},
		{"alter table a owner /* to */ to someone", false},
		{"create table a as -- all\n(select 1)", false},
		{"grant select on a to public", false},
		{"alter default privileges grant select on tables to public", false},
		{"set role someone", false},
		{"set search_path = public", false},
		{"create extension citext", false},
		{"create temp table a (id int)", false},
		{"create schema other", false},
		{"create publication p for all tables", false},
		{"refresh materialized view w", false},
		{"create table a (id int); 'never closed", false},
	}
	for _, test := range tests {
		t.Run(test.sql, func(t *testing.T) {
			t.Parallel()
			err := migrate.OnlyStructure(test.sql)
			var e *migrate.FileError
			if (err == nil) != test.only || err != nil && !errors.As(err, &e) {
				t.Errorf("got %v, expected only structure: %t", err, test.only)
			}
		})
	}
}
