package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// tables are those of the service, in the order of the migrations.
var tables = []string{"users", "photos", "follows", "likes", "boards_by_request", "entities", "notes_by_user"}

// wrongLikes is counted beside them: the photos whose number of likes is not the number of rows about them.
const wrongLikes = "photos p where likes <> (select count(*) from likes where photo_id = p.id)"

// countRows asks the hosts themselves, past the service and the router, how many rows there are, and prints it. It tells
// whether they are as many as the users know of.
func (t *try) countRows(ctx context.Context, m *shards.Map) (ok bool, err error) {
	counts := map[string]map[string]int{} // by host and table
	for host, config := range t.hosts.primaries() {
		counts[host], err = countOn(ctx, config, m, host)
		if err != nil {
			return false, fmt.Errorf("%s: %w", host, err)
		}
	}
	ok = true
	written := t.load.Written()
	t.say("\nThe rows of all shards, counted by SQL on the hosts themselves, and how many the users expect:\n")
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "TABLE  \tON pg-a\tON pg-b\tTOGETHER\tEXPECTED\t\n")
	for _, name := range tables {
		a, b, want := counts["pg-a"][name], counts["pg-b"][name], written[name]
		expected := fmt.Sprint(want.Least)
		if want.Most > want.Least {
			expected += fmt.Sprint(" to ", want.Most)
		}
		fmt.Fprintf(table, "%-7s\t%d\t%d\t%d\t%s\t\n", name, a, b, a+b, expected)
		ok = ok && want.Has(a+b)
	}
	if err := table.Flush(); err != nil {
		return false, err
	}
	wrong := counts["pg-a"][wrongLikes] + counts["pg-b"][wrongLikes]
	t.say("Photos whose number of likes is not the number of their rows in likes: %d.", wrong)
	return ok && wrong == 0, nil
}

// countOn counts the rows of all shards of a host.
func countOn(ctx context.Context, config *pgx.ConnConfig, m *shards.Map, host string) (map[string]int, error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	counts := map[string]int{}
	for _, n := range m.NumbersOn(host) {
		if _, err := conn.Exec(ctx, "select set_config('search_path', $1, false)", m.SearchPath(n)); err != nil {
			return nil, err
		}
		for _, what := range slices.Concat(tables, []string{wrongLikes}) {
			var rows int
			if err := conn.QueryRow(ctx, "select count(*) from "+what).Scan(&rows); err != nil {
				return nil, fmt.Errorf("%s: %w", m.Schema(n), err)
			}
			counts[what] += rows
		}
	}
	return counts, nil
}
