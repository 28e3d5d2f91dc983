package pgtest

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
)

// Hostile starts a server that answers each startup message as serve does, and returns its address.
func Hostile(t testing.TB, serve func(conn net.Conn, b *pgproto3.Backend)) string {
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

// AskSCRAM asks a client of [Hostile] for iterations of SCRAM, waits until it has computed them, and refuses it.
func AskSCRAM(b *pgproto3.Backend, iterations int) error {
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
	if _, err = b.Receive(); err != nil {
		return err
	}
	b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "53300", Message: "no"})
	return b.Flush()
}
