package routes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

const (
	// swapPause is the time between two maps in the part swaps.
	swapPause = 2 * time.Millisecond
	// movable is the number of shards that change hosts in the part swaps, one at a time; the others stay.
	movable = 8
)

// swapsLoop sets the title of photos to the name of their host.
const swapsLoop = `
	DO $loop$ DECLARE schema text; BEGIN
		FOR schema IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^shard_\d{5}$' LOOP
			EXECUTE format('UPDATE %%I.photos SET title = $1', schema) USING text '%s';
		END LOOP;
	END $loop$`

// measureSwaps changes the map all the time in one of two routers that make the same calls. Some shards exist on both hosts,
// and each new map places one of them on the other host. Every row contains the name of its host, which is checked.
func measureSwaps(ctx context.Context, b *bench) error {
	const goroutines = 64
	before := runtime.NumGoroutine()
	hosts, err := b.hostsOfSwaps(ctx, b.most(256))
	if err != nil {
		return err
	}
	m, err := mapOfSwaps(hosts, b.most(256), 1)
	if err != nil {
		return err
	}
	still, err := openRouter(ctx, m)
	if err != nil {
		return err
	}
	defer still.Close()
	moving, err := openRouter(ctx, m)
	if err != nil {
		return err
	}
	defer moving.Close()

	swaps := &swapper{router: moving, hosts: moving.Map().Hosts()}
	var laps [2][]lap
	rounds := max(b.cfg.Rounds, int(time.Duration(b.cfg.Swaps)*swapPause/b.cfg.Turn))
	for round := range rounds + 1 { // the first is a warm-up
		b.progress("%d map changes", swaps.done)
		for i, r := range []*router.Router{moving, still} {
			stop := func() error { return nil }
			if r == moving {
				maps, err := swaps.next(int(b.cfg.Turn / swapPause))
				if err != nil {
					return err
				}
				stop = swaps.begin(ctx, maps)
			}
			l, err := takeLap(ctx, goroutines, b.cfg.Turn, callsOfSwaps(r))
			if err := errors.Join(err, stop()); err != nil {
				return err
			}
			if round > 0 {
				laps[i] = append(laps[i], l)
			}
		}
	}
	b.addLaps("map that changes beside a still one", goroutines, laps[0], laps[1], perSecond, p50, p99)
	b.add("map changes", 0, "number", []float64{float64(swaps.done)}, nil)
	b.add("map changes", 0, "us each", []float64{microseconds(swaps.took) / float64(max(1, swaps.done))}, nil)
	moving.Close()
	still.Close()
	n := 0
	if err := until(ctx, func() (bool, error) {
		n, err = sessionsOf(ctx, m, oursName)
		return n == 0 && runtime.NumGoroutine() <= before, err
	}); err != nil {
		return err
	}
	b.add("after Close of both", 0, "sessions left", []float64{float64(n)}, nil)
	b.add("after Close of both", 0, "goroutines left", []float64{float64(max(0, runtime.NumGoroutine()-before))}, nil)
	return nil
}

// hostsOfSwaps makes two hosts, each with all shards.
func (b *bench) hostsOfSwaps(ctx context.Context, count int) ([]shards.Host, error) {
	hosts, err := b.cfg.NewHosts(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.describe(ctx, hosts[0]); err != nil {
		return nil, err
	}
	return hosts[:2], stats.Together(2, func(i int) error {
		m, err := mapOf(count, hosts[i:i+1])
		if err != nil {
			return err
		}
		if err := makeShards(ctx, m); err != nil {
			return err
		}
		if err := server.Exec(ctx, hosts[i], fmt.Sprintf(swapsLoop, hosts[i].Name)); err != nil {
			return err
		}
		return server.Checkpoint(ctx, hosts[i])
	})
}

// mapOfSwaps returns a version of the map. The shards are on the hosts in turn; with each version one of the movable ones
// changes its host.
func mapOfSwaps(hosts []shards.Host, count, version int) (*shards.Map, error) {
	c := shards.Config{Cluster: "bench", Version: version, Shards: count, Epoch: server.Epoch, Layout: server.Layout, Hosts: hosts}
	on := make([][]shards.Number, 2)
	for n := range count {
		host := n % 2
		if turns := (version + n/movable) / max(1, count/movable); n%movable == 0 {
			host = turns % 2
		}
		on[host] = append(on[host], shards.Number(n))
	}
	for i, host := range hosts {
		c.Placement = append(c.Placement, shards.Placement{Shards: shards.SetOf(on[i]...), Host: host.Name})
	}
	return c.Map()
}

// callsOfSwaps selects by primary key in any shard, and checks that the row is on a host that has it.
func callsOfSwaps(r *router.Router) call {
	query := photoByID("")
	hosts := r.Map().Hosts()
	return func(ctx context.Context, _, i int) (bool, error) {
		n := rand.IntN(r.Map().Len())
		shard, err := forKey(ctx, r, int64(n))
		if err != nil {
			return false, err
		}
		var owner int
		var host string
		if err := shard.QueryRow(ctx, query, 1+i%photosPerShard).Scan(&owner, &host); err != nil {
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
	hosts  []shards.Host
	done   int
	took   time.Duration
}

// next returns the following maps.
func (s *swapper) next(n int) ([]*shards.Map, error) {
	maps := make([]*shards.Map, n)
	for i := range maps {
		var err error
		if maps[i], err = mapOfSwaps(s.hosts, s.router.Map().Len(), s.router.Map().Version()+1+i); err != nil {
			return nil, err
		}
	}
	return maps, nil
}

// begin changes maps until the returned function is called.
func (s *swapper) begin(ctx context.Context, maps []*shards.Map) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		tick := time.NewTicker(swapPause)
		defer tick.Stop()
		for _, m := range maps {
			select {
			case <-ctx.Done():
				ended <- nil
				return
			case <-tick.C:
			}
			if err := s.swap(m); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

func (s *swapper) swap(m *shards.Map) error {
	began := time.Now()
	if err := s.router.SetMap(m); err != nil {
		return err
	}
	s.took += time.Since(began)
	s.done++
	return nil
}
