package connect_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A server does not fill the memory of its clients before they know that it is theirs.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	// answering returns a server that lets everybody log in, and answers the check of its identity by answer.
	answering := func(answer func(b *pgproto3.Backend)) func(net.Conn, *pgproto3.Backend) {
		return func(_ net.Conn, b *pgproto3.Backend) {
			b.Send(&pgproto3.AuthenticationOk{})
			for name, value := range map[string]string{"client_encoding": "UTF8", "server_encoding": "UTF8", "standard_conforming_strings": "on"} {
				b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
			}
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			_ = b.Flush()
			for {
				m, err := b.Receive()
				if err != nil {
					return
				}
				if q, ok := m.(*pgproto3.Query); ok && strings.Contains(q.String, "kiloshard.settings") {
					answer(b)
					return
				}
			}
		}
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
			_ = pgtest.AskSCRAM(b, 10_000_000)
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
		{"rows without end", "other rows than expected", answering(func(b *pgproto3.Backend) {
			b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("a"), DataTypeOID: 25}, {Name: []byte("b"), DataTypeOID: 25}}})
			for b.Flush() == nil {
				b.Send(&pgproto3.DataRow{Values: [][]byte{make([]byte, 1<<20), nil}})
			}
		})},
		{"settings without end in the answer", "the server sent 1000 messages of ", answering(func(b *pgproto3.Backend) {
			for i := 0; b.Flush() == nil; i++ {
				b.Send(&pgproto3.ParameterStatus{Name: fmt.Sprint(i), Value: "on"})
			}
		})},
		{"long settings in the answer", "the server sent 4 messages of ", answering(func(b *pgproto3.Backend) {
			for i := 0; b.Flush() == nil; i++ {
				b.Send(&pgproto3.ParameterStatus{Name: fmt.Sprint(i), Value: strings.Repeat("x", 1<<20)})
			}
		})},
		{"notices without end in the answer", "the server sent 1000 messages of ", answering(func(b *pgproto3.Backend) {
			for b.Flush() == nil {
				b.Send(&pgproto3.NoticeResponse{Message: "x"})
			}
		})},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.Hostile(t, test.serve)
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
