package router_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pooler is a transaction-pooling proxy: a client has a session of the server's from its first message to the end of
// its transaction, and then maybe another one. It knows nothing of prepared statements. Its clients need no password.
type pooler struct {
	listener net.Listener
	sessions chan *pgconn.HijackedConn // the idle ones
	wait     sync.WaitGroup
}

// startPooler starts a pooler over some sessions, each of which has run SQL before.
func startPooler(ctx context.Context, t *testing.T, dsn string, sessions int, sql string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{listener: listener, sessions: make(chan *pgconn.HijackedConn, sessions)}
	for range sessions {
		conn, err := pgconn.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
		session, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		p.sessions <- session
		t.Cleanup(func() { _ = session.Conn.Close() })
	}
	p.wait.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.wait.Wait()
	})
	return listener.Addr().String()
}

func (p *pooler) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wait.Go(func() {
			defer conn.Close()
			_ = p.serve(pgproto3.NewBackend(conn, conn))
		})
	}
}

// serve serves one client until it leaves.
func (p *pooler) serve(client *pgproto3.Backend) error {
	if err := p.greet(client); err != nil {
		return err
	}
	var session *pgconn.HijackedConn // while the client has one
	for {
		msg, err := client.Receive()
		if _, leaves := msg.(*pgproto3.Terminate); leaves || err != nil {
			if session != nil {
				_ = session.Conn.Close() // in mid transaction
			}
			return err
		}
		if session == nil {
			session = <-p.sessions
		}
		session.Frontend.Send(msg)
		switch msg.(type) {
		case *pgproto3.Query, *pgproto3.Sync, *pgproto3.CopyDone, *pgproto3.CopyFail:
			idle, err := relay(client, session)
			if err != nil {
				return err
			}
			if idle {
				p.sessions <- session
				session = nil
			}
		}
	}
}

func (p *pooler) greet(client *pgproto3.Backend) error {
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return err
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.BackendKeyData{SecretKey: []byte{0, 0, 0, 0}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	return client.Flush()
}

// relay hands the server's answers to the client until it is the client's turn. It tells whether there is no
// transaction any more.
func relay(client *pgproto3.Backend, session *pgconn.HijackedConn) (idle bool, err error) {
	if err := session.Frontend.Flush(); err != nil {
		return false, err
	}
	for {
		msg, err := session.Frontend.Receive()
		if err != nil {
			return false, err
		}
		client.Send(msg)
		switch msg := msg.(type) {
		case *pgproto3.ReadyForQuery:
			return msg.TxStatus == 'I', client.Flush()
		case *pgproto3.CopyInResponse:
			return false, client.Flush()
		}
	}
}

func TestBehindTransactionPooler(t *testing.T) {
	t.Parallel()
	db, ctx := setup(t, options{})
	address := startPooler(ctx, t, db.dsns[0], 3, poison)
	for _, mode := range modes[1:] {
		t.Run(mode, func(t *testing.T) {
			b, ctx := setup(t, options{on: db, address: address, conns: 8, dsn: execMode(mode)})
			askAll(ctx, t, b)
		})
	}
}

// The default mode is wrong behind such a pooler. It fails, but no statement runs in another shard, or instead of
// another statement.
func TestWrongModeBehindTransactionPooler(t *testing.T) {
	t.Parallel()
	db, ctx := setup(t, options{})
	address := startPooler(ctx, t, db.dsns[0], 3, poison)
	b, ctx := setup(t, options{on: db, address: address, conns: 8})
	failed := 0
	var wait sync.WaitGroup
	var lock sync.Mutex
	for w := range 8 {
		wait.Go(func() {
			for i := range 200 {
				var owner, one int64
				s := b.shard(t, (w*7+i)%8)
				err := s.QueryRow(ctx, `select owner, $1::int from photos where id = $2`, i, 1).Scan(&owner, &one)
				if err == nil && (owner != int64(s.Number()) || one != int64(i)) {
					t.Errorf("%s was answered with owner %d, %d", s, owner, one)
				}
				lock.Lock()
				if err != nil {
					failed++
				}
				lock.Unlock()
			}
		})
	}
	wait.Wait()
	t.Logf("%d of 1600 calls failed", failed)
}
