package objects_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/internal/routertest"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(routertest.Main(m, nil, nil)) }

const shardCount = 4

var (
	types = []shards.ObjectType{{Name: "pin", Number: 1}, {Name: "board", Number: 2}, {Name: "person", Number: 3}}

	likes = objects.Relation{Name: "likes", From: "board", To: "pin"}

	byFacebook = objects.ModTable{Name: "persons_by_facebook", Shards: shardCount}

	tables = objects.Tables{
		Types:    []string{"pin", "board", "person"},
		Mappings: []objects.Relation{{From: "board", To: "pin"}, likes},
		Mods:     []objects.ModTable{byFacebook},
	}
)

// setup returns a router over four shards on two hosts with all tables.
func setup(t *testing.T) (*router.Router, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), routertest.Limit)
	t.Cleanup(cancel)
	config := shardtest.MapConfig(shardCount, []shards.Host{
		{Name: "pg-a", DSN: routertest.CreateDatabase(ctx, t)}, {Name: "pg-b", DSN: routertest.CreateDatabase(ctx, t)},
	})
	config.Types = types
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"001_objects.sql": {Data: []byte(tables.Migration())}}
	if _, err := migrate.Up(ctx, migrate.Config{Map: m, Files: files}); err != nil {
		t.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{Map: m, Failover: router.Failover{FailAfter: routertest.Limit}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, ctx
}

func open[T any](t *testing.T, r *router.Router, name string, options objects.Options[T]) *objects.Type[T] {
	t.Helper()
	all, err := objects.Open(r, name, options)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mapping(t *testing.T, r *router.Router, from, to string) *objects.Mapping {
	t.Helper()
	m, err := objects.OpenMapping(r, objects.Relation{From: from, To: to})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// exampleRouter returns a router over 4096 shards, of which those that the examples use are there, with all tables.
func exampleRouter(ctx context.Context, used ...shards.Number) *router.Router {
	config := shardtest.MapConfig(4096, []shards.Host{{Name: "pg-a", DSN: routertest.ExampleDatabase(ctx)}})
	config.Types = types
	m, err := config.Map()
	if err != nil {
		panic(err)
	}
	conn, err := pgx.Connect(ctx, m.Hosts()[0].ConnString())
	if err != nil {
		panic(err)
	}
	defer conn.Close(ctx)
	all := tables
	all.Mods = []objects.ModTable{logins}
	up, _, _ := strings.Cut(all.Migration(), "----")
	for _, n := range used {
		if _, err := conn.Exec(ctx, fmt.Sprintf("create schema if not exists %[1]s; set search_path = %[1]s; %[2]s", m.Schema(n), up)); err != nil {
			panic(err)
		}
	}
	r, err := router.New(ctx, router.Config{Map: m})
	if err != nil {
		panic(err)
	}
	return r
}
