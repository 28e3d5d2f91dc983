package routes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

const (
	// swapPause is the time between two maps in the part swaps.
	swapPause = 2 * time.Millisecond
	// movable is how often a shard can change hosts in the part swaps: one in movable shards does, one at a time.
	movable = 8
)

// swaps changes the map all the time in one of two routers that make the same calls. Some shards exist on both hosts, and
// each new map places one of them on the other host. Every row contains the name of its host, which is checked.
func swaps(ctx context.Context, s *stage) error {
	before := runtime.NumGoroutine()
	m, err := s.twice(ctx, s.cfg.most(256))
	if err != nil {
		return err
	}
	still, err := s.router(ctx, m)
	if err != nil {
		return err
	}
	moving, err := s.router(ctx, m)
	if err != nil {
		return err
	}
	changes, err := s.compareSwaps(ctx, moving, still)
	if err != nil {
		return err
	}
	s.add("map changes", 0, "number", float64(changes.done))
	s.add("map changes", 0, "us each", microseconds(changes.took)/float64(max(1, changes.done)))
	s.close()
	sessionsLeft, goroutinesLeft := 0, 0
	if err := until(ctx, func() (bool, error) {
		goroutinesLeft = max(0, runtime.NumGoroutine()-before)
		sessionsLeft, err = sessions(ctx, m, oursName)
		return sessionsLeft+goroutinesLeft == 0, err
	}); err != nil {
		return err
	}
	s.add("after Close of both", 0, "sessions left", float64(sessionsLeft))
	s.add("after Close of both", 0, "goroutines left", float64(goroutinesLeft))
	return nil
}

// compareSwaps has the routers take turns, in as many rounds as all map changes take.
func (s *stage) compareSwaps(ctx context.Context, moving, still *router.Router) (*swapper, error) {
	const goroutines = 64
	changes := &swapper{router: moving}
	var laps [2][]lap
	rounds := max(s.cfg.Rounds, int(time.Duration(s.cfg.Swaps)*swapPause/s.cfg.Turn))
	err := harness.Turns(rounds+1, 2, func(round, side int) (err error) { // the first is a warm-up
		var l lap
		if side == 0 {
			s.progress("%d map changes", changes.done)
			l, err = changes.lap(ctx, goroutines, s.cfg.Turn)
		} else {
			l, err = takeLap(ctx, goroutines, s.cfg.Turn, checkedSelects(still))
		}
		if round > 0 {
			laps[side] = append(laps[side], l)
		}
		return err
	})
	if err == nil {
		s.addLaps("map that changes beside a still one", goroutines, laps[0], laps[1], []string{perSecond, p50, p99})
	}
	return changes, err
}

// twice creates all shards on each of two hosts. The title of each photo is the name of its host.
func (s *stage) twice(ctx context.Context, count int) (*shards.Map, error) {
	hosts, err := s.hosts(ctx)
	if err != nil {
		return nil, err
	}
	if err := harness.Together(len(hosts), func(i int) error {
		m, err := server.Config(count, hosts[i:i+1]).Map()
		if err != nil {
			return err
		}
		if err := createShards(ctx, m); err != nil {
			return err
		}
		if err := server.Exec(ctx, hosts[i], fmt.Sprintf(titlesLoop, hosts[i].Name)); err != nil {
			return err
		}
		return server.Checkpoint(ctx, hosts[i])
	}); err != nil {
		return nil, err
	}
	return swappedMap(hosts, count, 1)
}

// titlesLoop sets the title of photos to the name of their host.
const titlesLoop = `
	DO $loop$ DECLARE schema text; BEGIN
		FOR schema IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^shard_\d{5}$' LOOP
			EXECUTE format('UPDATE %%I.photos SET title = $1', schema) USING text '%s';
		END LOOP;
	END $loop$`

// swappedMap returns a version of the map. The shards are on the hosts in turn; with each version one of the movable ones
// changes its host.
func swappedMap(hosts []shards.Host, count, version int) (*shards.Map, error) {
	var on [2][]shards.Number
	for n := range count {
		host := n % 2
		if turns := (version + n/movable) / max(1, count/movable); n%movable == 0 {
			host = turns % 2
		}
		on[host] = append(on[host], shards.Number(n))
	}
	c := server.Config(count, hosts)
	c.Version, c.Placement = version, nil
	for i, host := range hosts {
		c.Placement = append(c.Placement, shards.Placement{Shards: shards.SetOf(on[i]...), Host: host.Name})
	}
	return c.Map()
}

// checkedSelects selects by primary key in any shard, and checks that the row is on a host that has it.
func checkedSelects(r *router.Router) call {
	text := photoByID("")
	hosts := r.Map().Hosts()
	return func(ctx context.Context, _, i int) (bool, error) {
		n := rand.IntN(r.Map().Len())
		shard, err := forKey(ctx, r, int64(n))
		if err != nil {
			return false, err
		}
		var owner int
		var host string
		if err := shard.QueryRow(ctx, text, 1+i%photosPerShard).Scan(&owner, &host); err != nil {
			return false, err
		}
		if owner != n || n%movable != 0 && host != hosts[n%2].Name {
			return false, fmt.Errorf("%w: shard %d was answered by shard %d on %s", errWrongShard, n, owner, host)
		}
		return false, nil
	}
}

// swapper sets one map after the other in a router.
type swapper struct {
	router *router.Router
	done   int
	took   time.Duration
}

// lap takes a lap during which the map changes. The maps are made before it.
func (s *swapper) lap(ctx context.Context, goroutines int, length time.Duration) (l lap, err error) {
	m := s.router.Map()
	maps := make([]*shards.Map, length/swapPause)
	for i := range maps {
		if maps[i], err = swappedMap(m.Hosts(), m.Len(), m.Version()+1+i); err != nil {
			return l, err
		}
	}
	changing, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { return s.swap(changing, maps) })
	group.Go(func() (err error) {
		defer stop()
		l, err = takeLap(ctx, goroutines, length, checkedSelects(s.router))
		return err
	})
	err = group.Wait()
	return l, err
}

// swap sets the maps, with pauses, until ctx ends.
func (s *swapper) swap(ctx context.Context, maps []*shards.Map) error {
	tick := time.NewTicker(swapPause)
	defer tick.Stop()
	for _, m := range maps {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		began := time.Now()
		if err := s.router.SetMap(m); err != nil {
			return err
		}
		s.took += time.Since(began)
		s.done++
	}
	return nil
}
