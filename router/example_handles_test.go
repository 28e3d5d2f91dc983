package router_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/testdata/sqlc/albums"
)

// Package albums is what sqlc generated for pgx/v5. A shard is its DBTX.
func ExampleShard_sqlc() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	shard, err := r.ForShard(7)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := shard.Exec(ctx, albumsSchema); err != nil {
		log.Fatal(err)
	}
	queries := albums.New(shard)
	err = shard.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		made, err := queries.WithTx(tx).CreateAlbum(ctx, albums.CreateAlbumParams{
			Owner: 1031, Title: "summer", SeenBy: albums.VisibilityPrivate, Tags: []string{"sea"},
		})
		if err != nil {
			return err
		}
		return queries.WithTx(tx).PublishAlbum(ctx, made.ID)
	})
	if err != nil {
		log.Fatal(err)
	}
	found, err := queries.ListAlbums(ctx, 1031)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found[0].Title, "is", found[0].SeenBy, "in", shard)
	// Output: summer is public in shard 7 (shard_00007 on pg-a)
}

// Four people like a photo at the same time. Whoever is late is run again, and counts from what is there by then.
func ExampleRetry_Tx() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	shard, err := r.ForShard(7)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := shard.Exec(ctx, `create table likes (photo bigint, count int); insert into likes values (1, 0)`); err != nil {
		log.Fatal(err)
	}
	like := func() error {
		repeatable := pgx.TxOptions{IsoLevel: pgx.RepeatableRead}
		return router.Retry{Attempts: 10}.Tx(ctx, shard, repeatable, func(tx pgx.Tx) error {
			var count int
			if err := tx.QueryRow(ctx, `select count from likes where photo = $1`, 1).Scan(&count); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `update likes set count = $1 where photo = $2`, count+1, 1)
			return err
		})
	}
	var group errgroup.Group
	for range 4 {
		group.Go(like)
	}
	if err := group.Wait(); err != nil {
		log.Fatal(err)
	}
	var count int
	if err := shard.QueryRow(ctx, `select count from likes where photo = $1`, 1).Scan(&count); err != nil {
		log.Fatal(err)
	}
	fmt.Println("likes:", count)
	// Output: likes: 4
}
