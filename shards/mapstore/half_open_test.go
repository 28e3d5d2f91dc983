package mapstore_test

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// silencer is a proxy in front of a server. It can silence its connections, as a firewall does that has forgotten them:
// they stay open and pass nothing on. New connections work.
type silencer struct {
	listener net.Listener
	server   string
	silenced atomic.Int64 // connections up to this number are silenced
	count    atomic.Int64
	group    sync.WaitGroup
}

func newSilencer(t *testing.T, server string) *silencer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	s := &silencer{listener: l, server: server}
	s.group.Go(s.accept)
	t.Cleanup(func() {
		_ = l.Close()
		s.group.Wait()
	})
	return s
}

func (s *silencer) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", s.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		number := s.count.Add(1)
		for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
			s.group.Go(func() {
				defer way[1].Close()
				buffer := make([]byte, 1<<16)
				for {
					n, err := way[0].Read(buffer)
					if err != nil {
						return
					}
					if number > s.silenced.Load() {
						if _, err := way[1].Write(buffer[:n]); err != nil {
							return
						}
					}
				}
			})
		}
	}
}

// silence silences all present connections.
func (s *silencer) silence() { s.silenced.Store(s.count.Load()) }

// A watch notices that its connection has gone silent.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	hasty := func(o *mapstore.Options) { o.Limit, o.Poll = time.Second, 100*time.Millisecond }
	check := func(t *testing.T, between *silencer, s, direct mapstore.Store) {
		t.Helper()
		swap(t, direct, 0, 1)
		w := watch(t, s, 0)
		checkEntry(t, w.entry(t), 1, 1)
		last := 2
		if pgtest.Full() {
			last = 3
		}
		for version := 1; version < last; version++ {
			between.silence()
			swap(t, direct, version, version+1)
			checkEntry(t, w.entry(t), version+1, version+1)
		}
		eventually(t, "a change by the store whose connections were silent", func() bool {
			// A change whose outcome is unknown may have been made; then the next one finds its version.
			_, swapped := s.Swap(newContext(t), last, newChange(last+1))
			var conflict *mapstore.ConflictError
			if swapped != nil && !errors.As(swapped, &conflict) {
				return false
			}
			e, err := s.Load(newContext(t))
			return err == nil && e.Map.Version() == last+1
		})
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn := newDatabase(t, server)
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal("bad DSN")
		}
		between := newSilencer(t, u.Host)
		u.Host = between.listener.Addr().String()
		check(t, between, openPostgres(t, u.String(), hasty), openPostgres(t, dsn))
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		server := startEtcd(t, localetcd.Config{})
		u, err := url.Parse(server.Endpoint())
		noError(t, err)
		between := newSilencer(t, u.Host)
		store := shards.Store{Kind: "etcd", Endpoints: []string{"http://" + between.listener.Addr().String()}, Prefix: prefixOf(t)}
		check(t, between, open(t, shards.Config{Cluster: cluster, Store: store}, hasty), openEtcd(t, server))
	})
}
