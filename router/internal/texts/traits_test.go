package texts_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/router/internal/texts"
)

// TestTraits checks traits. Where the words do not decide, the trait must have the safe value.
func TestTraits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sql           string
		reads, leaves bool
	}{
		{"select 1", true, false},
		{"  SELECT title FROM photos WHERE id = $1;", true, false},
		{"values (1), (2)", true, false},
		{"table photos", true, false},
		{"-- get one\n/* by /* its */ key */ select * from photos", true, false},
		{"with p as (select 1) select * from p", true, false},
		{"select 'insert; delete', $$update$$, $a$ for update $a$, e'\\'; drop'", true, false},
		{"select next_id()", false, false},
		{`select "Temp", temp, temporary from photos`, true, false},
		{"select $1::int, $2", true, false},
		{"", false, false},
		{";", false, false},
		{"select 1; select 2", false, false},
		{"select * from photos for update", false, false},
		{"select * from photos for no key update skip locked", false, false},
		{"select * from photos for share", false, false},
		{"select * into other from photos", false, false},
		{"with gone as (delete from photos returning id) select * from gone", false, false},
		{"insert into photos values (1)", false, false},
		{"explain analyze select 1", false, false},
		{"select set_config('x.y', 'z', true)", false, true},
		{`select "set_config"('x.y', 'z', false)`, false, true},
		{"select pg_advisory_lock(1)", false, true},
		{"select pg_advisory_xact_lock(1)", false, false},
		{"set search_path = other", false, true},
		{"set role other", false, true},
		{"set local statement_timeout = 1", false, false},
		{"set local search_path = other", false, true},
		{"set transaction read only", false, false},
		{"set x.y = 1; set local a.b = 2", false, true},
		{"set local a.b = 2; set x.y = 1", false, true},
		{"update photos set local = 1", false, false},
		{"reset all", false, true},
		{"listen news", false, true},
		{"create temp table x (i int)", false, true},
		{"create local temporary table x (i int)", false, true},
		{"create table temps (i int)", false, false},
		{"select * into temp x from photos", false, true},
		{"begin", false, true},
		{"commit; begin", false, true},
		{"do $$ begin end $$", false, true},
		{"call p()", false, true},
		{"declare c cursor with hold for select 1", false, true},
	} {
		if got := texts.NewCache(nil).Of(c.sql).Reads; got != c.reads {
			t.Errorf("%s: reads: %t", c.sql, got)
		}
		if got := texts.NewCache(nil).Of(c.sql).Leaves; got != c.leaves {
			t.Errorf("%s: leaves: %t", c.sql, got)
		}
	}
}

// FuzzTraits checks that the scan ends for any text.
func FuzzTraits(f *testing.F) {
	for _, sql := range []string{"select '", `select "`, "select $a$", "/*", "--", "e'\\", "$1", "$", "$$"} {
		f.Add(sql)
	}
	f.Fuzz(func(_ *testing.T, sql string) { texts.NewCache(nil).Of(sql) })
}
