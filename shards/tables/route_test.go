package tables_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/tables"
)

const rows = `
	insert into users (id, email) select n, 'u' || n from generate_series(1, 5) n;
	insert into albums select n, 1 + n % 5 from generate_series(1, 20) n;
	insert into photos select n, 1 + n % 20 from generate_series(1, 100) n;
	insert into tags select n, 'tag' from generate_series(1, 100) n;
	insert into logins select 'u' || 1 + n % 5 from generate_series(1, 50) n;
	insert into comments select n, case when n % 3 > 0 then 1 + n % 100 end from generate_series(1, 60) n;
	insert into visits select n, 1 + n % 5, '2026-07-01' from generate_series(1, 10) n;
	insert into visit_pages select n, '2026-07-01' from generate_series(1, 10) n;
	insert into base select 1 + n % 5 from generate_series(1, 5) n;
	insert into derived select 1 from generate_series(1, 7) n;
	insert into "Old Data"."Ta""ble" select 1 + n % 5 from generate_series(1, 15) n;
`

// TestConditions holds that each row with a key is in one shard by the condition of its table, and that the joins say the same.
func TestConditions(t *testing.T) {
	t.Parallel()
	conn := connected(t, photos+rows)
	c := read(t, conn)
	g := graph(t, c, tables.Options{Choices: map[tables.Name]tables.Choice{name("comments"): {Through: "comments_photo_id_fkey"}}})
	count := func(query string) (n int) {
		if err := conn.QueryRow(t.Context(), query, pgx.QueryExecModeSimpleProtocol).Scan(&n); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return n
	}
	for table, want := range map[string]int{
		"public.users": 5, "public.albums": 20, "public.photos": 100, "public.tags": 100, "public.logins": 50, "public.comments": 40,
		"public.visits": 10, "public.visit_pages": 10, "public.base": 5, `"Old Data"."Ta""ble"`: 15,
	} {
		n, err := tables.ParseName(table)
		if err != nil {
			t.Fatal(err)
		}
		route, ok := g.Route(n)
		if !ok {
			t.Fatalf("%s reaches no key", table)
		}
		from, all := c.Table(n).From(), 0
		joins, key := route.Joins("t", "k")
		for shard := range 4 {
			test := func(key string) string { return fmt.Sprintf("%s %% 4 = %d", key, shard) }
			got := count(fmt.Sprintf("select count(*) from %s t where %s", from, route.Condition("t", test)))
			if joined := count(fmt.Sprintf("select count(*) from %s t%s where %s", from, joins, test(key))); joined != got {
				t.Errorf("%s: %d rows of shard %d by the condition, %d by the joins", table, got, shard, joined)
			}
			all += got
		}
		if all != want {
			t.Errorf("%s: %d rows are in shards, expected %d", table, all, want)
		}
		if rows, joined := count("select count(*) from "+from+" t"), count(fmt.Sprintf("select count(*) from %s t%s", from, joins)); rows != joined {
			t.Errorf("%s: the joins make %d rows of %d", table, joined, rows)
		}
	}
}
