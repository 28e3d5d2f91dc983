package routes

import (
	"context"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/shards"
)

// leftLimit limits how long sessions may remain after Close, until they notice that the client is gone.
const leftLimit = time.Minute

// measureCrowd runs very many goroutines on two hosts. It measures the longest waits, and what remains after both sides
// are closed.
func measureCrowd(ctx context.Context, b *bench) error {
	m, err := b.newCluster(ctx, b.most(64), 2)
	if err != nil {
		return err
	}
	goroutines := runtime.NumGoroutine()
	laps, err := b.crowd(ctx, m)
	if err != nil {
		return err
	}
	b.addLaps("select on 2 hosts", b.cfg.Crowd, laps[0], laps[1], perSecond, p50, p99, p999, longest)

	left := 0
	err = until(ctx, func() (bool, error) {
		left = runtime.NumGoroutine() - goroutines
		return left <= 0, nil
	})
	if err != nil {
		return err
	}
	if err := b.addSessions(ctx, m, "after Close", func(n int) bool { return n == 0 }); err != nil {
		return err
	}
	b.add("after Close of both", 0, "goroutines left", []float64{float64(max(0, left))}, nil)
	return nil
}

// crowd returns the laps of both sides, ours first, after closing both.
func (b *bench) crowd(ctx context.Context, m *shards.Map) (laps [][]lap, err error) {
	r, err := openRouter(ctx, m)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	pools := make([]*pgxpool.Pool, len(m.Hosts()))
	for i, host := range m.Hosts() {
		if pools[i], err = openPlain(ctx, host, plainName); err != nil {
			return nil, err
		}
		defer pools[i].Close()
	}
	// One schema of each host, as if there were no shards.
	firsts := make([]shards.Number, len(pools))
	queries := make([]string, len(pools))
	for i, host := range m.Hosts() {
		firsts[i] = m.NumbersOn(host.Name)[0]
		queries[i] = photoByID(m.Schema(firsts[i]) + ".")
	}
	plain := func(ctx context.Context, worker, i int) (bool, error) {
		k := (worker + i) % len(pools)
		return false, selectPhoto(ctx, pools[k], queries[k], 1+(worker+i)%photosPerShard, int64(firsts[k]))
	}
	if laps, err = b.compare(ctx, b.cfg.Crowd, oursOver(r, selects, int64(m.Len())), plain); err != nil {
		return nil, err
	}
	return laps, b.addSessions(ctx, m, "before Close", func(n int) bool { return n > 0 })
}

// addSessions adds the number of sessions of both sides on all hosts, when it is as expected or the time is up.
func (b *bench) addSessions(ctx context.Context, m *shards.Map, what string, expected func(n int) bool) error {
	var counts [2]float64
	for i, name := range []string{oursName, plainName} {
		n := 0
		err := until(ctx, func() (bool, error) {
			var err error
			n, err = sessionsOf(ctx, m, name)
			return expected(n), err
		})
		if err != nil {
			return err
		}
		counts[i] = float64(n)
	}
	b.add(what, 0, "sessions", counts[:1], counts[1:])
	return nil
}

// sessionsOf returns how many sessions with an application_name the hosts have.
func sessionsOf(ctx context.Context, m *shards.Map, name string) (all int, err error) {
	for _, host := range m.Hosts() {
		conns, err := server.Open(ctx, host, 1)
		if err != nil {
			return 0, err
		}
		n := 0
		const query = "select count(*) from pg_stat_activity where datname = current_database() and application_name = $1"
		err = conns[0].QueryRow(ctx, query, name).Scan(&n)
		server.Close(conns)
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// until waits for a condition, at most leftLimit.
func until(ctx context.Context, condition func() (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, leftLimit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := condition()
		if done || err != nil {
			return err
		}
		select {
		case <-limited.Done():
			return ctx.Err() // nil after leftLimit
		case <-tick.C:
		}
	}
}
