package move

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Status returns all moves that the ledgers of a map's hosts know, the newest last. It asks all hosts at once; if one does
// not answer, the others' moves come with the error.
func Status(ctx context.Context, m *shards.Map) ([]Move, error) {
	var mu sync.Mutex
	var all []Move
	err := eachHost(ctx, m, func(_ shards.Host, conn *pgx.Conn) error {
		found, err := moves(ctx, conn, sourceSide)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found...)
		return err
	})
	slices.SortStableFunc(all, func(a, b Move) int { return a.Began.Compare(b.Began) })
	return all, err
}

// Clean drops the old schemas of moves that have ended, and the fences in their place, and returns the shards whose moves
// these were; of some shards only if there are any. Who does not know of the moves then meets "does not exist".
func Clean(ctx context.Context, m *shards.Map, only shards.Set) (shards.Set, error) {
	var mu sync.Mutex
	var cleaned []shards.Number
	err := eachHost(ctx, m, func(_ shards.Host, conn *pgx.Conn) error {
		found, err := moves(ctx, conn, sourceSide)
		if err != nil {
			return err
		}
		for _, old := range found {
			if old.Outcome != Moved || only.Len() > 0 && !only.Has(old.Shard) {
				continue
			}
			if err := lockShard(ctx, conn, old.turn()); err != nil {
				return err
			}
			if err := old.drop(ctx, conn); err != nil {
				return &shards.ShardError{Shard: old.Shard, Schema: old.moved(), Host: old.Source, Err: err}
			}
			mu.Lock()
			cleaned = append(cleaned, old.Shard)
			mu.Unlock()
		}
		return nil
	})
	return shards.SetOf(cleaned...), err
}

// eachHost runs fn with a session to every host of a map at once, and joins the errors as [shards.HostError].
func eachHost(ctx context.Context, m *shards.Map, fn func(shards.Host, *pgx.Conn) error) error {
	errs := make([]error, len(m.Hosts()))
	var wg sync.WaitGroup
	for i, host := range m.Hosts() {
		wg.Go(func() {
			conn, err := open(ctx, host)
			if err != nil {
				errs[i] = err
				return
			}
			defer closeConn(ctx, conn)
			if err := fn(host, conn); err != nil {
				errs[i] = &shards.HostError{Host: host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
