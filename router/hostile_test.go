package router_test

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
)

// TestAHostileHostSlowsNoOther has one of two hosts ask each login for much SCRAM, and refuse it then. While many callers call it, the
// router tries few logins, and the other host answers. How many calls a second that answers is logged: it depends on the machine.
func TestAHostileHostSlowsNoOther(t *testing.T) {
	const conns = 8
	took := time.Hour // of 200,000 iterations, at best
	for range 3 {
		began := time.Now()
		if _, err := pbkdf2.Key(sha256.New, "secret", []byte("salt"), 200_000, sha256.Size); err != nil {
			t.Fatal(err)
		}
		took = min(took, time.Since(began))
	}
	for _, iterations := range []int{200_000, 10_000_000} {
		t.Run(fmt.Sprint(iterations), func(t *testing.T) {
			var logins, computed atomic.Int64
			address := pgtest.Hostile(t, func(_ net.Conn, b *pgproto3.Backend) {
				logins.Add(1)
				if pgtest.AskSCRAM(b, iterations) == nil {
					computed.Add(1)
				}
			})
			b, ctx := setup(t, options{hosts: 2, conns: conns, config: func(c *shards.Config) {
				c.Hosts[1].DSN = "postgres://app:secret@" + address + "/app?sslmode=disable"
			}})
			count := func() (n int) { // calls to the good host in a second
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				for ; ctx.Err() == nil; n++ {
					var one int
					if err := b.shard(t, 0).QueryRow(ctx, "select 1").Scan(&one); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
				return n
			}
			_ = count() // connects
			alone := count()
			began := time.Now()
			hostile, stop := context.WithCancel(ctx)
			var refused atomic.Bool
			var callers sync.WaitGroup
			for range 2 * conns {
				callers.Go(func() {
					each := time.NewTicker(10 * time.Millisecond)
					defer each.Stop()
					for range each.C {
						var one int
						err := b.shard(t, shardCount-1).QueryRow(hostile, "select 1").Scan(&one)
						switch {
						case hostile.Err() != nil:
							return
						case err == nil:
							t.Error("the hostile host has answered")
						case strings.Contains(err.Error(), "asks for 10000000 iterations of SCRAM"):
							refused.Store(true)
						}
					}
				})
			}
			beside := count()
			stop()
			callers.Wait()
			seconds := time.Since(began).Seconds()
			t.Logf("%d calls a second alone, %d beside %d logins to the other host in %.1f s", alone, beside, logins.Load(), seconds)
			// The first logins of each connection and of probes, and then one a second. A quarter of the time is for computing.
			first, each := int64(conns+2+seconds), int64(1+seconds/2/took.Seconds())
			if beside == 0 || iterations == 200_000 && computed.Load() > each || iterations == 10_000_000 && (logins.Load() > first || !refused.Load()) {
				t.Errorf("%d calls to the good host, %d logins to the other, of which %d computed", beside, logins.Load(), computed.Load())
			}
		})
	}
}
