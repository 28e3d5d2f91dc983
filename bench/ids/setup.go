package ids

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// newMap returns a map with 16 shards on the first host, generators of every kind, and the other two hosts as ticket
// servers.
func newMap(hosts []shards.Host) (*shards.Map, error) {
	if len(hosts) != 3 {
		return nil, fmt.Errorf("%d hosts; expected one for the shards and two ticket servers", len(hosts))
	}
	main := []string{hosts[0].Name}
	config := server.Config(16, hosts)
	config.Placement = shards.Evenly(16, hosts[:1])
	config.Generators = []shards.Generator{
		{Kind: shards.Tickets, Names: []string{"photo"}, Hosts: []string{hosts[1].Name, hosts[2].Name}},
		{Kind: shards.Interleaved, Names: []string{"order"}},
		{Kind: shards.CentralSequence, Names: []string{"message"}, Hosts: main},
		{Kind: shards.Row, Names: []string{"invoice"}, Hosts: main},
		{Kind: shards.UUIDv4, Names: []string{"session"}},
		{Kind: shards.UUIDv7, Names: []string{"event"}},
	}
	return config.Map()
}

// setUp creates everything that the ways need. The second result releases it.
func setUp(ctx context.Context, m *shards.Map) (_ *generators, closeAll func(), err error) {
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
		return nil, nil, err
	}
	err = server.Exec(ctx, m.Hosts()[0], "CREATE SCHEMA bench", publishedFunction, "CREATE SEQUENCE bench.bare_seq")
	if err != nil {
		return nil, nil, err
	}
	var closers []func()
	closeAll = func() {
		for _, fn := range slices.Backward(closers) {
			fn()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()

	r, err := router.New(ctx, router.Config{Map: m, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
		return nil
	}})
	if err != nil {
		return nil, nil, err
	}
	closers = append(closers, r.Close)
	shard, err := r.ForShard(5)
	if err != nil {
		return nil, nil, err
	}
	leased := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: shard})
	closers = append(closers, leased.Close)

	photo, err := ids.Open(ctx, ids.Config{Map: m, Name: "photo", Timeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	closers = append(closers, photo.Close)
	tickets := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: photo, Age: time.Minute})
	closers = append(closers, tickets.Close)
	return &generators{leased: leased, photo: photo, tickets: tickets}, closeAll, nil
}
