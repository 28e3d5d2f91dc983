package ids_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestTicketsSurviveAServer kills either ticket server in turn under load: no caller sees an error, no number comes
// twice, and a server that is back is used again.
func TestTicketsSurviveAServer(t *testing.T) {
	t.Parallel()
	var servers []*localpg.Server
	var hosts []shards.Host
	for _, name := range []string{"pg-a", "pg-b"} {
		server, err := localpg.Start(t.Context(), shardtest.ServerConfig())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Stop(context.Background()) })
		if server.Source() == localpg.DSN {
			t.Skip("a server that came by its DSN is not ours to kill")
		}
		dsn, err := server.CreateDatabase(t.Context(), "tickets")
		if err != nil {
			t.Fatal(err)
		}
		servers, hosts = append(servers, server), append(hosts, shards.Host{Name: name, DSN: dsn})
	}
	b := setupOn(t, hosts)
	g, err := ids.Open(t.Context(), ids.Config{
		Map: b.m, Name: "photo", Timeout: testLimit, Retry: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: g, Age: 2 * testLimit, Timeout: testLimit})
	t.Cleanup(lease.Close)

	var all collection[shards.ID]
	var odd, even atomic.Int64 // pg-a makes the odd numbers, pg-b the even ones
	load, end := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			from := []ids.Generator[shards.ID]{g, lease}[i%2]
			for load.Err() == nil {
				made, err := from.NextIDs(t.Context(), 1+i)
				if err != nil {
					t.Errorf("a caller was told: %v", err)
					return
				}
				all.add(made...)
				for _, id := range made {
					if id%2 == 1 {
						odd.Add(1)
					} else {
						even.Add(1)
					}
				}
			}
		})
	}
	both := func(when string) {
		t.Helper()
		oddBefore, evenBefore := odd.Load(), even.Load()
		for deadline := time.Now().Add(testLimit); odd.Load() == oddBefore || even.Load() == evenBefore; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) || t.Failed() {
				t.Fatalf("%s: a server gives no numbers any more", when)
			}
		}
	}
	both("at first")
	for i, server := range servers {
		if err := server.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := []*atomic.Int64{&even, &odd}[i]
		for before, deadline := left.Load(), time.Now().Add(testLimit); left.Load() < before+100; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) || t.Failed() {
				t.Fatalf("with %s killed, the other gives no numbers", hosts[i].Name)
			}
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		both(hosts[i].Name + " is back")
	}
	end()
	callers.Wait()
	all.checkUnique(t, 1000)
	t.Logf("%d odd numbers, %d even ones", odd.Load(), even.Load())
}

// TestTicketsWithoutAServer has none left.
func TestTicketsWithoutAServer(t *testing.T) {
	t.Parallel()
	var servers []ids.TicketServer
	for _, name := range []string{"a", "b"} {
		pool, err := pgxpool.New(t.Context(), "postgres://nobody:secret@127.0.0.1:1/none")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		servers = append(servers, ids.TicketServer{Name: name, DB: pool})
	}
	tickets := ids.NewTickets(ids.TicketsConfig{Servers: servers, Function: "kiloshard.next_photo_ids"})
	t.Cleanup(tickets.Close)
	for range 3 {
		_, err := tickets.NextIDs(t.Context(), 1)
		var e *shards.HostError
		if !errors.As(err, &e) {
			t.Fatalf("got %v, expected a HostError for each", err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tickets.NextIDs(gone, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left got %v", err)
	}
}
