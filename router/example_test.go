package router_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// The smallest program: a new photo in the shard of its owner, found again by its ID alone.
func Example() {
	ctx := context.Background()
	config := shards.Config{
		Cluster:   "test",
		Shards:    64,
		Epoch:     epoch,
		Hosts:     []shards.Host{{Name: "pg-a", DSN: routertest.ExampleDatabase(ctx)}},
		Placement: []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: 63}), Host: "pg-a"}},
	}
	m, err := config.Map()
	if err != nil {
		log.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{Map: m})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	const owner = 1042
	home, err := r.ForKey(ctx, shards.NumberKey(owner))
	if err != nil {
		log.Fatal(err)
	}
	id, err := home.NextID(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := home.Exec(ctx, `insert into photos (id, owner, title) values ($1, $2, $3)`, id, owner, "sunset"); err != nil {
		log.Fatal(err)
	}

	found, err := r.ForID(id)
	if err != nil {
		log.Fatal(err)
	}
	var title string
	if err := found.QueryRow(ctx, `select title from photos where id = $1`, id).Scan(&title); err != nil {
		log.Fatal(err)
	}
	fmt.Println(title, "is in", found)
	// Output: sunset is in shard 18 (shard_00018 on pg-a)
}

func ExampleShard_Tx() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	shard, err := r.ForKey(ctx, shards.NumberKey(7))
	if err != nil {
		log.Fatal(err)
	}
	err = shard.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into photos (id, owner) values ($1, $2)`, 70, 7); err != nil {
			return err
		}
		var count int
		if err := tx.QueryRow(ctx, `select count(*) from photos where owner = $1`, 7).Scan(&count); err != nil {
			return err
		}
		fmt.Println(count, "photos in", shard.Schema())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 2 photos in shard_00007
}
