package routes

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/network"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// photo is a row that is fetched by its ID.
type photo struct {
	id    shards.ID
	title string
}

// fetch fetches photos by their IDs, in any order.
type fetch func(ctx context.Context, r *router.Router, ids []shards.ID) ([]photo, error)

// fetchQuery is the query for one shard.
const fetchQuery = `select id, title from photos where id = any($1)`

func scanPhoto(row pgx.CollectableRow) (p photo, err error) {
	err = row.Scan(&p.id, &p.title)
	return p, err
}

// fetchTogether queries all shards of a host at once.
func fetchTogether(ctx context.Context, r *router.Router, ids []shards.ID) ([]photo, error) {
	return many.GetMany(ctx, r, ids, many.Query[photo]{SQL: fetchQuery, Scan: scanPhoto})
}

// fetchByLoop queries one shard after the other.
func fetchByLoop(ctx context.Context, r *router.Router, ids []shards.ID) ([]photo, error) {
	var order []shards.Number
	places := map[shards.Number]router.Shard{}
	wanted := map[shards.Number][]shards.ID{}
	for _, id := range ids {
		shard, err := forID(ctx, r, id)
		if err != nil {
			return nil, err
		}
		n := shard.Number()
		if _, ok := places[n]; !ok {
			order = append(order, n)
			places[n] = shard
		}
		wanted[n] = append(wanted[n], id)
	}
	var all []photo
	for _, n := range order {
		rows, err := places[n].Query(ctx, fetchQuery, wanted[n])
		if err != nil {
			return nil, err
		}
		photos, err := pgx.CollectRows(rows, scanPhoto)
		if err != nil {
			return nil, err
		}
		all = append(all, photos...)
	}
	return all, nil
}

// getManyPart compares a way to fetch photos from many shards of two hosts with a loop.
func getManyPart(ours fetch) onePart {
	return onePart{Name: "getmany", Run: func(ctx context.Context, b *bench) error {
		const wanted = 500
		m, err := b.newCluster(ctx, b.most(200), 2)
		if err != nil {
			return err
		}
		ids, err := addPhotos(ctx, m, wanted)
		if err != nil {
			return err
		}
		if err := b.compareFetches(ctx, m, "loopback", ids, ours); err != nil {
			return err
		}
		far, err := network.Open(m.Hosts(), farDelay)
		if err != nil {
			return err
		}
		defer far.Close()
		if m, err = far.Through(m); err != nil {
			return err
		}
		return b.compareFetches(ctx, m, fmt.Sprintf("%s a round trip", 2*farDelay), ids, ours)
	}}
}

func (b *bench) compareFetches(ctx context.Context, m *shards.Map, network string, ids []shards.ID, ours fetch) error {
	var routers [2]*router.Router
	var calls [2]call
	for i, way := range []fetch{ours, fetchByLoop} {
		var err error
		if routers[i], err = openRouter(ctx, m); err != nil {
			return err
		}
		defer routers[i].Close()
		calls[i] = func(ctx context.Context, _, _ int) (bool, error) {
			photos, err := way(ctx, routers[i], ids)
			if err != nil {
				return false, err
			}
			return false, checkPhotos(photos, ids)
		}
	}
	b.progress("%s", network)
	laps, err := b.compare(ctx, 1, calls[:]...)
	if err != nil {
		return err
	}
	b.addLaps(fmt.Sprintf("%d IDs of %d shards on 2 hosts, %s", len(ids), m.Len(), network), 1, laps[0], laps[1], p50, p99)
	return nil
}

// checkPhotos returns an error unless each photo was returned once, with its title.
func checkPhotos(photos []photo, ids []shards.ID) error {
	missing := map[shards.ID]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	for _, p := range photos {
		if !missing[p.id] || p.title != titleOf(p.id) {
			return fmt.Errorf("photo %d with title %q was not requested, or returned twice", p.id, p.title)
		}
		delete(missing, p.id)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d of %d photos are missing", len(missing), len(ids))
	}
	return nil
}

func titleOf(id shards.ID) string { return fmt.Sprint("photo ", id) }

// addPhotos inserts photos into all shards of a map in turn, and returns their IDs.
func addPhotos(ctx context.Context, m *shards.Map, n int) ([]shards.ID, error) {
	r, err := openRouter(ctx, m)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var ids []shards.ID
	for i := range n {
		number := shards.Number(i % m.Len())
		id, err := server.Layout.Compose(shards.Parts{Milliseconds: int64(1000 + i), Shard: number})
		if err != nil {
			return nil, err
		}
		shard, err := forID(ctx, r, id)
		if err != nil {
			return nil, err
		}
		if _, err := shard.Exec(ctx, `insert into photos values ($1, $2, $3)`, id, number, titleOf(id)); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
