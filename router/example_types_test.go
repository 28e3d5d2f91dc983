package router_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// registerMoods tells a connection of the type mood, which each schema of its host has under an OID of its own. It is one
// query, however many schemas there are; a shard that comes later has its type known to connections made after that.
func registerMoods(ctx context.Context, conn *pgx.Conn) error {
	const query = `select format('%I.%I', n.nspname, t.typname), t.oid, t.typarray
from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
where t.typname = 'mood' and n.nspname ~ '^shard_[0-9]{5}$'`
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return err
	}
	var name string
	var oid, array uint32
	_, err = pgx.ForEachRow(rows, []any{&name, &oid, &array}, func() error {
		mood := &pgtype.Type{Name: name, OID: oid, Codec: &pgtype.EnumCodec{}}
		conn.TypeMap().RegisterType(mood)
		conn.TypeMap().RegisterType(&pgtype.Type{Name: name + "[]", OID: array, Codec: &pgtype.ArrayCodec{ElementType: mood}})
		return nil
	})
	return err
}

// An enum that migrations have made in each shard. Its values come and go as text without further ado; arrays and
// composites of it want their types registered, on each connection for all schemas that may be used there.
func ExampleConfig_types() {
	ctx := context.Background()
	plain := exampleRouter(ctx)
	defer plain.Close()
	err := many.Each(ctx, plain, shards.SetOf(7, 8), many.Options{}, func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `create type mood as enum ('bad', 'good'); alter table photos add moods mood[]`)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	r, err := router.New(ctx, router.Config{Map: plain.Map(), Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.AfterConnect = registerMoods
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for _, n := range []shards.Number{7, 8} {
		shard, err := r.ForShard(n)
		if err != nil {
			log.Fatal(err)
		}
		var moods []string
		const query = `update photos set moods = $1 returning moods`
		if err := shard.QueryRow(ctx, query, []string{"good", "bad"}).Scan(&moods); err != nil {
			log.Fatal(err)
		}
		fmt.Println(shard.Schema(), moods)
	}
	// Output:
	// shard_00007 [good bad]
	// shard_00008 [good bad]
}
