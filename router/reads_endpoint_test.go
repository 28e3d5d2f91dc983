package router_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
)

// startEndpoint returns the DSN of an address that leads to these servers by turns, one connection each, as a reader
// endpoint does.
func startEndpoint(t *testing.T, servers ...*localpg.Server) string {
	t.Helper()
	var targets []*url.URL
	for _, server := range servers {
		u, err := url.Parse(server.DSN("app"))
		if err != nil {
			t.Fatal("a server's DSN is no URL")
		}
		targets = append(targets, u)
	}
	n := -1
	relay, err := localpg.StartRelay(func() string {
		n++
		return targets[n%len(targets)].Host
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(relay.Stop)
	endpoint := *targets[0]
	endpoint.Host = relay.Address()
	return endpoint.String()
}

// onBoth has connections to both servers behind an endpoint, all that there may be, and then stops one of them replaying.
func onBoth(ctx context.Context, t *testing.T, b *readBundle, late *localpg.Server) {
	t.Helper()
	b.awaitAll(ctx, t)
	reader := b.shard(t, 5).ReadOnly(router.Reads{MaxLag: time.Minute, ReplicaOnly: true, Wait: time.Minute})
	for b.replica(0).Conns < 4 {
		var group errgroup.Group
		for range 8 {
			group.Go(func() error { _, err := reader.Exec(ctx, `select pg_sleep(0.05)`); return err })
		}
		_ = group.Wait() // a server that has just come may be behind
	}
	pauseReplay(ctx, t, late)
}

// TestEndpointOfSeveralServers has one of two servers behind an endpoint stop replaying. Measurements are made on the other
// one. No read is answered by the one that is late, with MaxLag or After, in whatever way it is made.
func TestEndpointOfSeveralServers(t *testing.T) {
	t.Parallel()
	servers := theReplicated(t)
	late := newStandby(t, servers, "late")
	const title = `select title, pg_is_in_recovery() from photos where id = 2005`
	for name, read := range map[string]func(context.Context, router.Reader, *string, *bool) error{
		"statement": func(ctx context.Context, r router.Reader, got *string, recovering *bool) error {
			return r.QueryRow(ctx, title).Scan(got, recovering)
		},
		"transaction": func(ctx context.Context, r router.Reader, got *string, recovering *bool) error {
			return r.Tx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
				return tx.QueryRow(ctx, title).Scan(got, recovering)
			})
		},
		"batch": func(ctx context.Context, r router.Reader, got *string, recovering *bool) error {
			var b pgx.Batch
			b.Queue(title).QueryRow(func(row pgx.Row) error { return row.Scan(got, recovering) })
			return r.SendBatch(ctx, &b).Close()
		},
	} {
		t.Run("After, "+name, func(t *testing.T) {
			b, ctx := withReplicas(t, options{}, startEndpoint(t, servers.harmless[0], late))
			onBoth(ctx, t, b, late)
			defer on(ctx, t, late, `select pg_wal_replay_resume()`)
			s := b.shard(t, 5)
			var onReplica atomic.Int64
			for i := range 8 {
				const query = `insert into photos values (2005, 0, $1) on conflict (id) do update set title = excluded.title`
				want := fmt.Sprint(name, " ", i)
				if _, err := s.Exec(ctx, query, want); err != nil {
					t.Fatal(err)
				}
				at, err := s.Position(ctx)
				if err != nil {
					t.Fatal(err)
				}
				var group errgroup.Group
				for range 8 {
					group.Go(func() error {
						var got string
						var recovering bool
						reads := router.Reads{MaxLag: time.Minute, After: at, Wait: time.Minute}
						if err := read(ctx, s.ReadOnly(reads), &got, &recovering); err != nil {
							return err
						}
						if got != want {
							return fmt.Errorf("got %q after %q was written; on a replica: %v", got, want, recovering)
						}
						if recovering {
							onReplica.Add(1)
						}
						return nil
					})
				}
				if err := group.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if onReplica.Load() == 0 {
				t.Error("no read was answered by the replica that is not late")
			}
		})
	}
	t.Run("MaxLag", func(t *testing.T) {
		b, ctx := withReplicas(t, options{}, startEndpoint(t, servers.harmless[0], late))
		s := b.shard(t, 5)
		if _, err := s.Exec(ctx, `create table if not exists heartbeat as select 0::bigint as beat`); err != nil {
			t.Fatal(err)
		}
		onBoth(ctx, t, b, late)
		defer on(ctx, t, late, `select pg_wal_replay_resume()`)
		var beats heartbeats
		running, stop := context.WithCancel(ctx)
		defer stop()
		var group errgroup.Group
		group.Go(func() error { return beats.write(ctx, running, b.plain, s.Schema()) })
		var read [2]atomic.Int64 // on the primary, and on replicas
		const limit = 500 * time.Millisecond
		for range 4 {
			group.Go(func() error {
				return beats.check(ctx, running, t, s.ReadOnly(router.Reads{MaxLag: limit}), limit, &read)
			})
		}
		ends := time.Now().Add(4 * limit)
		eventually(ctx, t, func() bool { return time.Now().After(ends) && read[1].Load() > 100 })
		stop()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
}
