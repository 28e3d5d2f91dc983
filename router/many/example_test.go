package many_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

type Photo struct {
	ID    shards.ID
	Owner int64
	Title string
}

// Deletes old rows in all shards, on each host in at most two shards at a time.
func ExampleEach() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	var deleted atomic.Int64
	err := many.Each(ctx, r, r.All(), many.Options{PerHost: 2}, func(ctx context.Context, s router.Shard) error {
		tag, err := s.Exec(ctx, `delete from photos where owner < $1`, 10)
		deleted.Add(tag.RowsAffected())
		return err
	})
	if partial := new(shards.PartialError); errors.As(err, &partial) {
		log.Fatal("to be done again: ", partial)
	}
	fmt.Println(deleted.Load(), "photos are gone")
	// Output: 10 photos are gone
}

// Reads the photos of some owners, each in the owner's shard.
func ExampleEachKey() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	var count atomic.Int64
	err := many.EachKey(ctx, r, []int64{3, 7, 9}, many.Options{}, func(ctx context.Context, s router.Shard, owners []int64) error {
		var n int64
		err := s.QueryRow(ctx, `select count(*) from photos where owner = any($1)`, owners).Scan(&n)
		count.Add(n)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(count.Load(), "photos")
	// Output: 3 photos
}

func ExampleCollect() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	titles, err := many.Collect(ctx, r, r.All(), many.Query[string]{
		SQL:  `select title from photos where owner between $1 and $2`,
		Args: []any{41, 43},
		Scan: pgx.RowTo[string],
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", titles)
	// Output: ["of shard 41" "of shard 42" "of shard 43"]
}

// Prints the rows of the shards that are done, and then the shards that failed.
func ExampleCollectByShard() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	set := shards.SetOf(7, 8, 9)
	lost, err := r.ForShard(8)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := lost.Exec(ctx, `drop table photos`); err != nil {
		log.Fatal(err)
	}
	groups, err := many.CollectByShard(ctx, r, set, many.Query[Photo]{
		SQL: `select id, owner, title from photos`, Scan: pgx.RowToStructByName[Photo],
	})
	for _, group := range groups {
		fmt.Println(group.Shard.Schema(), group.Rows)
	}
	if partial := new(shards.PartialError); errors.As(err, &partial) {
		fmt.Println("done:", partial.Done)
		fmt.Println(partial.Failed[0])
	}
	// Output:
	// shard_00007 [{1 7 of shard 7}]
	// shard_00009 [{1 9 of shard 9}]
	// done: 7,9
	// shard 8 (shard_00008 on pg-a): ERROR: relation "photos" does not exist (SQLSTATE 42P01)
}

// Reads the two newest photos of all shards.
func ExampleMerge() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	err := many.EachKey(ctx, r, []int64{50, 3, 21}, many.Options{}, func(ctx context.Context, s router.Shard, owners []int64) error {
		const query = `insert into photos (id, owner, title) select 1000 + owner, owner, 'new of ' || owner from unnest($1::bigint[]) owner`
		_, err := s.Exec(ctx, query, owners)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	newest := func(a, b Photo) bool { return a.ID > b.ID }
	q := many.Query[Photo]{
		SQL:  `select id, owner, title from photos order by id desc limit 2`,
		Scan: pgx.RowToStructByName[Photo],
	}
	for photo, err := range many.Merge(ctx, r, r.All(), q, 2, newest) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(photo.Title)
	}
	// Output:
	// new of 50
	// new of 21
}

// Exports all shards with one row of each in memory.
func ExampleStream() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	rows, owners := 0, int64(0)
	q := many.Query[int64]{SQL: `select owner from photos`, Scan: pgx.RowTo[int64]}
	for owner, err := range many.Stream(ctx, r, r.All(), q) {
		if err != nil {
			log.Fatal(err)
		}
		rows++
		owners += owner
	}
	fmt.Println(rows, owners)
	// Output: 64 2016
}

// Reads a page of photos by their IDs, from the shards that made them. An ID without a row is skipped.
func ExampleGetMany() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	var ids []shards.ID
	for _, n := range []shards.Number{42, 7, 60} {
		s, err := r.ForShard(n)
		if err != nil {
			log.Fatal(err)
		}
		id, err := s.NextID(ctx)
		if err != nil {
			log.Fatal(err)
		}
		ids = append(ids, id)
		if n == 7 {
			continue // this ID is never used
		}
		if _, err := s.Exec(ctx, `insert into photos (id, owner, title) values ($1, $2, 'sunset')`, id, n); err != nil {
			log.Fatal(err)
		}
	}

	photos, err := many.GetMany(ctx, r, ids, many.Query[Photo]{
		SQL:  `select id, owner, title from photos where id = any($1)`,
		Scan: pgx.RowToStructByName[Photo],
	})
	if unread := new(many.UnreadError); errors.As(err, &unread) {
		log.Fatal("try again: ", unread.IDs)
	}
	for _, photo := range photos {
		fmt.Println(photo.Title, "of", photo.Owner)
	}
	// Output:
	// sunset of 42
	// sunset of 60
}
