package router_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// Reads that may be a little old go to a replica of the shard's host, if the map lists one that is not further behind.
func ExampleShard_ReadOnly() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	shard, err := r.ForKey(ctx, shards.NumberKey(7))
	if err != nil {
		log.Fatal(err)
	}
	feed := shard.ReadOnly(router.Reads{MaxLag: 2 * time.Second, HedgeP95: true})
	var title string
	if err := feed.QueryRow(ctx, `select title from photos where id = $1`, 1).Scan(&title); err != nil {
		log.Fatal(err)
	}
	fmt.Println(title)
	_, err = feed.Exec(ctx, `delete from photos`)
	fmt.Println(errors.Is(err, router.ErrReadOnly))
	// Output:
	// of shard 7
	// true
}

// Somebody changes a title, and the page that comes next shows it, even if another process reads it from a replica: the
// position goes along, as in a cookie.
func ExampleShard_Position() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	shard, err := r.ForKey(ctx, shards.NumberKey(7))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := shard.Exec(ctx, `update photos set title = $1 where id = $2`, "at the sea", 1); err != nil {
		log.Fatal(err)
	}
	at, err := shard.Position(ctx)
	if err != nil {
		log.Fatal(err)
	}
	cookie := at.String()

	var after router.Position
	if err := after.UnmarshalText([]byte(cookie)); err != nil {
		log.Print(err) // whoever made it up reads without it
	}
	var title string
	err = shard.ReadOnly(router.Reads{After: after}).QueryRow(ctx, `select title from photos where id = $1`, 1).Scan(&title)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(title)
	// Output: at the sea
}

// A page over all shards that may be some seconds old.
func ExampleReads_manyShards() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	counts, err := many.Collect(ctx, r, r.All(), many.Query[int]{
		SQL:   `select count(*) from photos`,
		Scan:  pgx.RowTo[int],
		Reads: &router.Reads{MaxLag: 5 * time.Second},
	})
	if err != nil {
		log.Fatal(err)
	}
	all := 0
	for _, count := range counts {
		all += count
	}
	fmt.Println(all, "photos in", len(counts), "shards")
	// Output: 64 photos in 64 shards
}
