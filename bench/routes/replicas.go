package routes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/router"
)

// stalling is a select by primary key that takes 50 ms on a replica in one call of 200.
const stalling = `select owner, title from photos
	where id = $1 and (not (pg_is_in_recovery() and random() < 0.005) or pg_sleep(0.05) is not null)`

// measureReplicas reads from a replica. Neither side is pgxpool: at first the plain side is the primary alone, then readers
// that do not hedge.
func measureReplicas(ctx context.Context, b *bench) (err error) {
	const goroutines = 16
	m, err := b.newCluster(ctx, b.most(fewShards), 1)
	if err != nil {
		return err
	}
	dsn, stop, err := b.standby(ctx)
	if errors.Is(err, errors.ErrUnsupported) && !slices.Contains(b.cfg.Only, b.part) {
		b.report.LeftOut = append(b.report.LeftOut, b.part+": "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	hosts := slices.Clone(m.Hosts())
	config, err := pgxpool.ParseConfig(hosts[0].ConnString())
	if err != nil {
		return err
	}
	hosts[0].Replicas = []string{poolDSN(dsn(config.ConnConfig.Database), oursName, nil)}
	if m, err = server.On(m, hosts); err != nil {
		return err
	}
	r, err := openRouter(ctx, m)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := awaitReplica(ctx, r); err != nil {
		return err
	}
	turn := b.cfg.Turn
	defer func() { b.cfg.Turn = turn }()
	b.cfg.Turn = turn * 2 / 5

	query := photoByID("")
	before := r.ReadStats()[0]
	laps, err := b.compare(ctx, goroutines, readingBy(r, query, &router.Reads{}, 1), readingBy(r, query, nil, 1), readingBy(r, query, &router.Reads{}, 2))
	if err != nil {
		return err
	}
	reads, onPrimary := readsSince(r, before)
	what := fmt.Sprintf("select, %d shards, on a replica, and on the primary", m.Len())
	b.addLaps(what, goroutines, laps[0], laps[1], perSecond, p50, p99)
	b.addLaps(fmt.Sprintf("select, %d shards, half on each, and on the primary", m.Len()), goroutines, laps[2], laps[1], perSecond, p99)
	b.add("reads for the replica that the primary got", goroutines, "percent", []float64{100 * onPrimary / reads}, nil)

	before = r.ReadStats()[0]
	laps, err = b.compare(ctx, goroutines, readingBy(r, stalling, &router.Reads{HedgeP95: true}, 1), readingBy(r, stalling, &router.Reads{}, 1))
	if err != nil {
		return err
	}
	after := r.ReadStats()[0]
	calls := 0
	for _, l := range laps[0] {
		calls += l.calls
	}
	what = "a replica that stalls in 1 call of 200, hedged and not"
	b.addLaps(what, goroutines, laps[0], laps[1], perSecond, p50, p99, p999)
	extra := 100 * float64(after.Hedged-before.Hedged) / float64(max(1, calls))
	b.add("reads that were sent twice, hedged and not", goroutines, "percent", []float64{extra}, []float64{0})
	return nil
}

// standby starts a standby of the first server.
func (b *bench) standby(ctx context.Context) (dsn func(string) string, stop func() error, err error) {
	if b.cfg.NewStandby == nil {
		return nil, nil, fmt.Errorf("no standby: %w", errors.ErrUnsupported)
	}
	b.progress("starting a standby")
	return b.cfg.NewStandby(ctx)
}

// awaitReplica waits until readers read from the replica.
func awaitReplica(ctx context.Context, r *router.Router) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	shard, err := forKey(ctx, r, 0)
	if err != nil {
		return err
	}
	var one int
	return shard.ReadOnly(router.Reads{ReplicaOnly: true, Wait: time.Minute}).QueryRow(ctx, "select 1").Scan(&one)
}

// readingBy returns calls that select photos of all shards. If reads is not nil, every of-th worker reads from a replica,
// and the others from the primary.
func readingBy(r *router.Router, query string, reads *router.Reads, of int) call {
	return func(ctx context.Context, worker, i int) (bool, error) {
		key := int64(worker+i) % int64(r.Map().Len())
		shard, err := forKey(ctx, r, key)
		if err != nil {
			return false, err
		}
		on := querier(shard)
		if reads != nil && worker%of == 0 {
			on = shard.ReadOnly(*reads)
		}
		return false, selectPhoto(ctx, on, query, 1+(7*worker+i)%photosPerShard, key)
	}
}

// readsSince returns how many reads readers have made since then, and how many of those ran on the primary.
func readsSince(r *router.Router, before router.ReadStats) (all, onPrimary float64) {
	after := r.ReadStats()[0]
	onPrimary = float64(after.OnPrimary - before.OnPrimary)
	for i, replica := range after.Replicas {
		all += float64(replica.Reads - before.Replicas[i].Reads)
	}
	return all + onPrimary, onPrimary
}
