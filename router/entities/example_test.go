package entities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/internal/routertest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// Stores the entity of the article with its index of users, and adds the index of links later.
func Example() {
	ctx := context.Background()
	d := entities.Definition{Shards: 2, Indexes: []entities.IndexDefinition{
		{Name: "index_user_id", Properties: []entities.Property{{Name: "user_id", Type: entities.Text}}},
	}}
	r := exampleRouter(ctx, d.Migration())
	defer r.Close()
	store, err := entities.Open(ctx, r, d)
	if err != nil {
		log.Fatal(err)
	}
	id := entities.ID{0x71, 0xf0, 0xc4, 0xd2, 0x29, 0x1c, 0x4e, 0x12, 0x9e, 0x59, 0x5c, 0x4b, 0x35, 0xf3, 0x6c, 0x5e}
	if err := store.Put(ctx, id, []byte(`{
		"user_id": "f48b0440ca0c4f66991c4d5f6a078eaf",
		"feed_id": "f48b0440ca0c4f66991c4d5f6a078eaf",
		"title": "We just launched a new backend system for FriendFeed!",
		"link": "http://friendfeed.com/e/71f0c4d2-291c-cca6-2f78-6f335e9e5ccb",
		"published": 1235697046,
		"updated": 1235697046
	}`)); err != nil {
		log.Fatal(err)
	}
	show := func(all []entities.Entity, err error) {
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range all {
			var fields struct{ Title string }
			if err := json.Unmarshal(e.Body, &fields); err != nil {
				log.Fatal(err)
			}
			fmt.Println(fields.Title)
		}
	}
	show(store.Index("index_user_id").GetAll(ctx, "f48b0440ca0c4f66991c4d5f6a078eaf", entities.Page{}))

	// Later: a table on every shard, the definition deployed, and the cleaner fills it while the service runs.
	link := entities.IndexDefinition{Name: "index_link", Properties: []entities.Property{{Name: "link", Type: entities.Text}}}
	migrateExample(ctx, r, link.Migration())
	d.Indexes = append(d.Indexes, link)
	if store, err = entities.Open(ctx, r, d); err != nil {
		log.Fatal(err)
	}
	if err := store.Fill(ctx, "index_link", entities.CleanOptions{}); err != nil {
		log.Fatal(err)
	}
	show(store.Index("index_link").GetAll(ctx, "http://friendfeed.com/e/71f0c4d2-291c-cca6-2f78-6f335e9e5ccb", entities.Page{}))
	// Output:
	// We just launched a new backend system for FriendFeed!
	// We just launched a new backend system for FriendFeed!
}

// exampleRouter returns a router over two shards with the tables of a migration.
func exampleRouter(ctx context.Context, migration string) *router.Router {
	m, err := shardtest.MapConfig(2, []shards.Host{{Name: "pg-a", DSN: routertest.ExampleDatabase(ctx)}}).Map()
	if err != nil {
		log.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{Map: m})
	if err != nil {
		log.Fatal(err)
	}
	migrateExample(ctx, r, migration)
	return r
}

// migrateExample runs the migration in each shard, as kiloshard migrate up does with the file.
func migrateExample(ctx context.Context, r *router.Router, migration string) {
	conn, err := pgx.Connect(ctx, r.Map().Hosts()[0].ConnString())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)
	up, _, _ := strings.Cut(migration, "---- create above")
	for n := range r.All().All() {
		if _, err := conn.Exec(ctx, "set search_path = "+r.Map().Schema(n)+"; "+up); err != nil {
			log.Fatal(err)
		}
	}
}
