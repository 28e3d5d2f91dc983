package texts_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/router/internal/texts"
)

func TestSummaries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ sql, want string }{
		{`select 1`, "SELECT"},
		{`select title from photos where id = $1`, "SELECT photos"},
		{`SELECT p.title, 'from secrets' FROM "photos" p JOIN likes l ON l.photo = p.id`, "SELECT photos likes"},
		{`insert into photos (id) values ($1) on conflict (id) do update set title = $2 returning id`, "INSERT photos"},
		{`update photos set title = 'x' where id in (select photo from likes)`, "UPDATE photos SELECT likes"},
		{`delete from only photos`, "DELETE photos"},
		{`select id from photos for update`, "SELECT photos"},
		{`with old as (delete from photos returning id) insert into trash select id from old`, "DELETE photos INSERT trash SELECT old"},
		{`create table photos (id int)`, "CREATE TABLE"},
		{`begin`, "BEGIN"},
		{`delete from photos; delete from likes`, "DELETE photos DELETE likes"},
		{``, ""},
	} {
		if got := texts.NewCache(nil).Of(test.sql).Summary; got != test.want {
			t.Errorf("%s: got %q, want %q", test.sql, got, test.want)
		}
	}
}
