package connect_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// startHostile starts a server that answers the startup message as serve does.
func startHostile(t *testing.T, serve func(conn net.Conn, b *pgproto3.Backend)) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				in := bufio.NewReader(conn)
				var length uint32
				if binary.Read(in, binary.BigEndian, &length) != nil || length > 10_000 {
					return
				}
				_, _ = io.CopyN(io.Discard, in, int64(length)-4) // the startup message
				serve(conn, pgproto3.NewBackend(in, conn))
			}()
		}
	}()
	return listener.Addr().String()
}

// askSCRAM asks a client for iterations of SCRAM, and returns once it has computed them.
func askSCRAM(b *pgproto3.Backend, iterations int) error {
	b.Send(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}})
	if err := errors.Join(b.Flush(), b.SetAuthType(pgproto3.AuthTypeSASL)); err != nil {
		return err
	}
	m, err := b.Receive()
	if err != nil {
		return err
	}
	first, ok := m.(*pgproto3.SASLInitialResponse)
	if !ok {
		return fmt.Errorf("got %T", m)
	}
	_, nonce, _ := strings.Cut(string(first.Data), ",r=")
	b.Send(&pgproto3.AuthenticationSASLContinue{Data: fmt.Appendf(nil, "r=%sx,s=c2FsdA==,i=%d", nonce, iterations)})
	if err := errors.Join(b.Flush(), b.SetAuthType(pgproto3.AuthTypeSASLContinue)); err != nil {
		return err
	}
	_, err = b.Receive()
	return err
}

// A server does not fill the memory of its clients before they know that it is theirs.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	ready := func(b *pgproto3.Backend) {
		b.Send(&pgproto3.AuthenticationOk{})
		for name, value := range map[string]string{"client_encoding": "UTF8", "server_encoding": "UTF8", "standard_conforming_strings": "on"} {
			b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
		}
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		_ = b.Flush()
	}
	for _, test := range []struct {
		name, want string
		serve      func(net.Conn, *pgproto3.Backend)
	}{
		{"a message of 500 MB before login", "invalid body length", func(conn net.Conn, _ *pgproto3.Backend) {
			_, _ = conn.Write(binary.BigEndian.AppendUint32([]byte{'R'}, 500<<20))
			_, _ = io.Copy(io.Discard, conn) // until the client leaves
		}},
		{"10 million iterations", "the server asks for 10000000 iterations of SCRAM: expected at most 200000", func(_ net.Conn, b *pgproto3.Backend) {
			_ = askSCRAM(b, 10_000_000)
		}},
		{"settings without end", "the server sent 1001 messages of ", func(_ net.Conn, b *pgproto3.Backend) {
			b.Send(&pgproto3.AuthenticationOk{})
			for i := 0; b.Flush() == nil; i++ {
				b.Send(&pgproto3.ParameterStatus{Name: fmt.Sprint(i), Value: "on"})
			}
		}},
		{"notices without end", "the server sent 1001 messages of ", func(_ net.Conn, b *pgproto3.Backend) {
			for b.Flush() == nil {
				b.Send(&pgproto3.NoticeResponse{Message: "x"})
			}
		}},
		{"long notices", "the server sent 4 messages of ", func(_ net.Conn, b *pgproto3.Backend) {
			for b.Flush() == nil {
				b.Send(&pgproto3.NoticeResponse{Message: strings.Repeat("x", 1<<20)})
			}
		}},
		{"a request to authenticate of 1 MB", "a request to authenticate of 1048", func(_ net.Conn, b *pgproto3.Backend) {
			b.Send(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{strings.Repeat("x", 1<<20)}})
			_ = b.Flush()
		}},
		{"a hash of the password", "the server asks for an MD5 hash of the password, which is not sent", func(_ net.Conn, b *pgproto3.Backend) {
			b.Send(&pgproto3.AuthenticationMD5Password{})
			_ = b.Flush()
		}},
		{"rows without end", "other rows than expected", func(_ net.Conn, b *pgproto3.Backend) {
			ready(b)
			for {
				m, err := b.Receive()
				if err != nil {
					return
				}
				if q, ok := m.(*pgproto3.Query); !ok || !strings.Contains(q.String, "kiloshard.settings") {
					continue
				}
				b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("a"), DataTypeOID: 25}, {Name: []byte("b"), DataTypeOID: 25}}})
				for b.Flush() == nil {
					b.Send(&pgproto3.DataRow{Values: [][]byte{make([]byte, 1<<20), nil}})
				}
				return
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			address := startHostile(t, test.serve)
			hosts := shardtest.MapConfig(8, []shards.Host{{Name: "pg-a", DSN: "postgres://app@" + address + "/app?sslmode=disable"}})
			m, err := hosts.Map()
			if err != nil {
				t.Fatal(err)
			}
			if _, err = connect.Open(t.Context(), m.Hosts()[0], nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
