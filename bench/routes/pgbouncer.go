package routes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/network"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// behindPgBouncer are the settings that pgxpool's DSN needs behind a PgBouncer in transaction mode: names and values in turn.
func behindPgBouncer() []string { return []string{"default_query_exec_mode", "exec"} }

// measurePooled measures two clients on each side, which use many shards in turn, behind a PgBouncer with fewer sessions
// than the clients have connections.
func measurePooled(ctx context.Context, b *bench) (err error) {
	const clients, goroutines, sessions = 2, 16, 4
	m, err := b.newCluster(ctx, b.most(1000), 1)
	if err != nil {
		return err
	}
	bouncer, err := localpg.StartPgBouncer(ctx, localpg.PgBouncerConfig{
		DSN: m.Hosts()[0].ConnString(), Settings: map[string]string{"default_pool_size": fmt.Sprint(sessions)},
	})
	if errors.Is(err, localpg.ErrUnavailable) && !slices.Contains(b.cfg.Only, b.part) {
		b.report.LeftOut = append(b.report.LeftOut, b.part+": "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bouncer.Stop(ctx)) }()
	hosts := slices.Clone(m.Hosts())
	hosts[0].DSN = network.Redirect(hosts[0].ConnString(), bouncer.Address(), "")
	if m, err = server.On(m, hosts); err != nil {
		return err
	}

	var routers [clients]*router.Router
	var pools [clients]*pgxpool.Pool
	for i := range clients {
		if routers[i], err = openRouter(ctx, m); err != nil {
			return err
		}
		defer routers[i].Close()
		if pools[i], err = openPlain(ctx, hosts[0], plainName, behindPgBouncer()...); err != nil {
			return err
		}
		defer pools[i].Close()
	}
	var wrong [2]atomic.Int64 // rows of other shards: ours and plain
	counted := func(side int, err error) error {
		if errors.Is(err, errWrongShard) {
			wrong[side].Add(1)
			return nil
		}
		return err
	}
	queries := make([]string, m.Len())
	for n := range queries {
		queries[n] = photoByID(m.Schema(shards.Number(n)) + ".")
	}
	shardOf := func(worker, i int) shards.Number { return shards.Number((37*worker + i) % m.Len()) }
	ours := func(ctx context.Context, worker, i int) (bool, error) {
		n := shardOf(worker, i)
		shard, err := forKey(ctx, routers[worker%clients], int64(n))
		if err != nil {
			return false, err
		}
		query := photoByID("")
		return false, counted(0, selectPhoto(ctx, shard, query, 1+i%photosPerShard, int64(n)))
	}
	plain := func(ctx context.Context, worker, i int) (bool, error) {
		n := shardOf(worker, i)
		return false, counted(1, selectPhoto(ctx, pools[worker%clients], queries[n], 1+i%photosPerShard, int64(n)))
	}
	laps, err := b.compare(ctx, goroutines, ours, plain)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("select, %d shards, two clients, PgBouncer %s", m.Len(), bouncer.Version())
	b.add(what, goroutines, "rows of other shards", []float64{float64(wrong[0].Load())}, []float64{float64(wrong[1].Load())})
	b.addLaps(what, goroutines, laps[0], laps[1], perSecond, p50, p99)
	return nil
}
