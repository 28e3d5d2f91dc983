package pgtest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Silent starts a server that lets everybody log in and then says nothing more, until the test ends. It returns its address.
func Silent(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }() // its client has closed it
				if logIn(conn) {
					_, _ = io.Copy(io.Discard, conn)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}

// logIn lets a client log in without a password, and reports whether it did.
func logIn(conn net.Conn) bool {
	server := pgproto3.NewBackend(conn, conn)
	for {
		switch message, err := server.ReceiveStartupMessage(); message.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			_, _ = conn.Write([]byte("N"))
		case *pgproto3.StartupMessage:
			server.Send(&pgproto3.AuthenticationOk{})
			server.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte("key!")})
			server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			return server.Flush() == nil
		default:
			if err != nil || message != nil { // a request to cancel, or nothing
				return false
			}
		}
	}
}
