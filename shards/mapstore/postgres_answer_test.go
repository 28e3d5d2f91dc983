package mapstore_test

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// answerThief is a proxy in front of a server. It can drop the answer to one insert.
type answerThief struct {
	listener net.Listener
	server   string
	armed    atomic.Bool  // drop the answer to the next insert
	shut     atomic.Bool  // refuse connections after that
	late     atomic.Int64 // delay of each connection in nanoseconds
	group    sync.WaitGroup
}

func newAnswerThief(t *testing.T, dsn string) (thief *answerThief, through string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("bad DSN")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	thief = &answerThief{listener: l, server: u.Host}
	thief.group.Go(thief.accept)
	t.Cleanup(func() {
		_ = l.Close()
		thief.group.Wait()
	})
	u.Host = l.Addr().String()
	return thief, u.String()
}

func (a *answerThief) accept() {
	for {
		client, err := a.listener.Accept()
		if err != nil {
			return
		}
		time.Sleep(time.Duration(a.late.Load()))
		server, err := net.Dial("tcp", a.server)
		if err != nil || a.shut.Load() {
			_ = client.Close()
			if server != nil {
				_ = server.Close()
			}
			continue
		}
		var stolen atomic.Bool
		a.group.Go(func() {
			defer server.Close()
			buffer := make([]byte, 1<<16)
			for {
				n, err := client.Read(buffer)
				if bytes.Contains(buffer[:n], []byte("insert into kiloshard.maps")) && a.armed.CompareAndSwap(true, false) {
					stolen.Store(true)
				}
				if _, writeErr := server.Write(buffer[:n]); err != nil || writeErr != nil {
					return
				}
			}
		})
		a.group.Go(func() {
			defer client.Close()
			buffer := make([]byte, 1<<16)
			for {
				n, err := server.Read(buffer)
				// The answer is whole when the server is ready again.
				if stolen.Load() {
					if bytes.HasSuffix(buffer[:n], []byte{'Z', 0, 0, 0, 5, 'I'}) || err != nil {
						return
					}
					continue
				}
				if _, writeErr := client.Write(buffer[:n]); err != nil || writeErr != nil {
					return
				}
			}
		})
	}
}

func TestPostgresLostAnswer(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	direct := openPostgres(t, dsn)
	swap(t, direct, 0, 1)

	t.Run("found again", func(t *testing.T) {
		thief, through := newAnswerThief(t, dsn)
		s := openPostgres(t, through)
		thief.armed.Store(true)
		checkEntry(t, swap(t, s, 1, 2), 2, 2)
		if thief.armed.Load() {
			t.Error("no answer was lost")
		}
		checkEntry(t, load(t, direct), 2, 2)
		if all := versions(t, direct); len(all) != 2 {
			t.Errorf("%d versions, want 2", len(all))
		}
	})
	t.Run("unknown", func(t *testing.T) {
		thief, through := newAnswerThief(t, dsn)
		s := openPostgres(t, through, func(o *mapstore.Options) { o.Limit = 5 * time.Second })
		load(t, s)
		thief.armed.Store(true)
		thief.shut.Store(true)
		_, err := s.Swap(newContext(t), 2, newChange(3))
		checkIs(t, err, mapstore.ErrOutcomeUnknown)
		checkEntry(t, load(t, direct), 3, 3) // it was made
	})
}

// TestPostgresConnectsLate has a server that takes long to accept a connection, and a store whose limit allows that.
func TestPostgresConnectsLate(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	swap(t, openPostgres(t, dsn), 0, 1)
	thief, through := newAnswerThief(t, dsn)
	thief.late.Store(int64(4 * time.Second))
	checkEntry(t, load(t, openPostgres(t, through)), 1, 1)
}
