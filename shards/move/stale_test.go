package move_test

import (
	"context"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// TestThereAndBack has a shard leave its host, and come back after it was cleaned away, while routers that never hear of it go on to read and
// write it there: they find all of it or nothing.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	answered, refused := make([]int, 4), make([]int, 4)
	for i := range answered {
		r, err := router.New(ctx, router.Config{Map: b.m})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s, err := r.ForShard(1)
		if err != nil {
			t.Fatal(err)
		}
		callers.Go(func() {
			for ctx.Err() == nil {
				var rows int64
				var err error
				if i%2 == 0 {
					err = s.QueryRow(ctx, `select count(*) from photos where $1 > 0`, i+1).Scan(&rows)
				} else if tag, failed := s.Exec(ctx, `update photos set title = $1`, "stale"); failed == nil {
					rows = tag.RowsAffected()
				} else {
					err = failed
				}
				switch {
				case err != nil:
					refused[i]++
				case rows != 1000:
					t.Errorf("a router that knows nothing of the move has found %d rows", rows)
					return
				default:
					answered[i]++
				}
			}
		})
	}
	for _, to := range []string{"pg-b", "pg-a"} {
		b.cfg.To, b.cfg.Map = to, b.load()
		if _, err := move.Run(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
		if _, err := move.Clean(t.Context(), b.load(), shards.Set{}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	callers.Wait()
	for i := range answered {
		if answered[i] == 0 || refused[i] == 0 {
			t.Errorf("caller %d had %d answers and %d errors, so that the test proves nothing", i, answered[i], refused[i])
		}
	}
	b.equal("rows", b.text(0, `select count(*) from shard_00001.photos`), "1000")
}
