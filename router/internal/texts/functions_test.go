package texts_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/router/internal/texts"
)

// TestCalls checks that SQL which calls an unknown function does not count as a read.
func TestCalls(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		sql  string
		want bool
	}{
		{`select 1`, true},
		{`select id, title from photos where owner = $1 order by id limit 10`, true},
		{`select count(*), max(id) from photos where id in ($1, $2) and (owner = 3)`, true},
		{`select coalesce(title, '') || 'pay(1)' from photos -- pay(1)`, true},
		{`select price::numeric(10, 2) from items`, true},
		{`select array(select next_ids($1))`, false},
		{`select next_id()`, false},
		{`values (1), (2)`, true},
		{`select pay($1)`, false},
		{`select pay ($1)`, false},
		{"select pay -- it\n ($1)", false},
		{`select pay/* it */($1)`, false},
		{`select "pay"($1)`, false},
		{`select app.pay($1)`, false},
		{`select app.count($1)`, false},
		{`select * from pay($1)`, false},
		{`select (select count(*) from pay(1))`, false},
		{`select nextval('s')`, false},
		{`select pg_sleep(1), lo_create(0)`, false},
		{`select dblink_exec('delete')`, false},
		{`insert into photos values (1)`, false},
		{`select 1 for update`, false},
		{`select 1; select 2`, false},
		{`with gone as (delete from photos returning id) select id from gone`, false},
		{`call pay(1)`, false},
		{`select "Count"(1)`, false},
		{`select U&"count"(1)`, false},
	} {
		if got := texts.NewCache(nil).Of(test.sql).Reads; got != test.want {
			t.Errorf("%s: got %t, want %t", test.sql, got, test.want)
		}
	}
}
