package tables_test

import (
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/tables"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// connected returns a session in a database of the test's own, in which the statements were run.
func connected(t *testing.T, statements string) *pgx.Conn {
	t.Helper()
	conn := pgtest.Connect(t, shardtest.Hosts(t, 1)[0].ConnString())
	for _, text := range []string{"set search_path = public", statements, "set search_path = pg_catalog, pg_temp"} {
		if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

func read(t *testing.T, conn *pgx.Conn) *tables.Catalog {
	t.Helper()
	c, err := tables.Read(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// name returns a table of schema public.
func name(table string) tables.Name { return tables.Name{Schema: "public", Table: table} }

func graph(t *testing.T, c *tables.Catalog, o tables.Options) *tables.Graph {
	t.Helper()
	g, err := tables.NewGraph(c, tables.ColumnName{Table: name("users"), Column: "id"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// routes checks the routes of tables, written as [tables.Route.String] does; an empty one means none.
func routes(t *testing.T, g *tables.Graph, want map[string]string) {
	t.Helper()
	for table, route := range want {
		n, err := tables.ParseName(table)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := g.Route(n)
		if text := got.String(); ok != (route != "") || ok && text != route {
			t.Errorf("%s: got %q, %v, expected %q", table, text, ok, route)
		}
	}
}

func crossings(g *tables.Graph, table string) []string {
	var found []string
	for _, c := range g.Crossings(name(table)) {
		found = append(found, c.ForeignKey.Name+": "+c.Route.String())
	}
	slices.Sort(found)
	return found
}
