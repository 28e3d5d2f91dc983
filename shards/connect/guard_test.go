package connect_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// However what a server sends is cut into pieces, the guard passes it on as it is, or refuses the same.
func TestGuard(t *testing.T) {
	t.Parallel()
	scram := func(iterations string) *pgproto3.AuthenticationSASLContinue {
		return &pgproto3.AuthenticationSASLContinue{Data: []byte("r=abcdefgh,s=c2FsdA==,i=" + iterations)}
	}
	ready := &pgproto3.ReadyForQuery{TxStatus: 'I'}
	statuses := func(n int) (all []pgproto3.BackendMessage) {
		for range n {
			all = append(all, &pgproto3.ParameterStatus{Name: "TimeZone", Value: "UTC"})
		}
		return all
	}
	for _, test := range []struct {
		name, refused string
		messages      []pgproto3.BackendMessage
	}{
		{"a login", "", []pgproto3.BackendMessage{
			&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}}, scram("4096"), &pgproto3.AuthenticationSASLFinal{Data: []byte("v=abc")},
			&pgproto3.AuthenticationOk{}, statuses(1)[0], &pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte("1234")}, ready,
		}},
		{"as many iterations as may be", "", []pgproto3.BackendMessage{scram("200000"), ready}},
		{"one more", "asks for 200001 iterations", []pgproto3.BackendMessage{scram("200001"), ready}},
		{"a sign", "asks for 200001 iterations", []pgproto3.BackendMessage{scram("+200001"), ready}},
		{"no number", "", []pgproto3.BackendMessage{scram("many"), ready}},
		{"no parts", "", []pgproto3.BackendMessage{&pgproto3.AuthenticationSASLContinue{}, ready}},
		{"as many messages as may be", "", append(statuses(1000), ready)},
		{"one message more", "sent 1001 messages", append(statuses(1001), ready)},
		{"any number of messages later", "", append([]pgproto3.BackendMessage{ready, scram("200001")}, statuses(2000)...)},
	} {
		var sent []byte
		for _, m := range test.messages {
			var err error
			if sent, err = m.Encode(sent); err != nil {
				t.Fatal(err)
			}
		}
		for cut, by := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader} {
			got, err := io.ReadAll(connect.Guard(by(bytes.NewReader(sent))))
			switch {
			case test.refused == "" && (err != nil || !bytes.Equal(got, sent)):
				t.Errorf("%s, %s: got %d of %d bytes, %v", test.name, cut, len(got), len(sent), err)
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("%s, %s: got %v, expected %q", test.name, cut, err, test.refused)
			}
		}
	}
}

// TestIterations of a server's own: as many as an operator may want are computed, and no more.
func TestIterations(t *testing.T) {
	t.Parallel()
	dsn := role(t, plain, "iterates")
	for iterations, want := range map[int]string{1: "", 4096: "", 100_000: "", 250_000: "asks for 250000 iterations of SCRAM: expected at most 200000"} {
		sql(t, plain, fmt.Sprintf("alter role iterates password '%s'", verifier(t, sentinel, iterations)))
		conn, err := connect.Open(t.Context(), hostOf(dsn(sentinel, "", "sslmode=disable")), nil)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d iterations: got %v, expected %q", iterations, err, want)
		}
	}
}

// verifier returns what Postgres stores of a password.
func verifier(t *testing.T, password string, iterations int) string {
	t.Helper()
	salted, err := pbkdf2.Key(sha256.New, password, []byte("salt"), iterations, sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	keyed := func(text string) []byte {
		mac := hmac.New(sha256.New, salted)
		_, _ = mac.Write([]byte(text)) // it never fails
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(keyed("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode([]byte("salt")), encode(stored[:]), encode(keyed("Server Key")))
}

// Logins of a pool to a server that asks for many iterations take turns, and a quarter of the time of one processor.
func TestOneExpensiveLoginAtATime(t *testing.T) {
	t.Parallel()
	const iterations, logins = 50_000, 6
	address := pgtest.Hostile(t, func(_ net.Conn, b *pgproto3.Backend) { _ = pgtest.AskSCRAM(b, iterations) })
	_, pool := poolOf(t, hostOf("postgres://app:"+sentinel+"@"+address+"/app?sslmode=disable&pool_max_conns=6"), nil)
	took := time.Hour // by one, at best
	for range 3 {
		began := time.Now()
		_ = verifier(t, sentinel, iterations)
		took = min(took, time.Since(began))
	}
	began := time.Now()
	var all sync.WaitGroup
	for range logins {
		all.Go(func() {
			if _, err := pool.Acquire(t.Context()); err == nil || !strings.Contains(err.Error(), "53300") {
				t.Errorf("got %v, expected that the server refuses after the login", err)
			}
		})
	}
	all.Wait()
	if all := time.Since(began); all < (logins-1)*2*took { // each but the last holds its turn for four times as long
		t.Errorf("%d logins took %s, and one takes %s", logins, all, took)
	}
}

// TestSuspect: a server that a login has refused is tried again once a second, by one login, and is trusted again after a login.
func TestSuspect(t *testing.T) {
	t.Parallel()
	var logins atomic.Int64
	var mended atomic.Bool
	address := pgtest.Hostile(t, func(_ net.Conn, b *pgproto3.Backend) {
		logins.Add(1)
		if !mended.Load() {
			_ = pgtest.AskSCRAM(b, 10_000_000)
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		_ = b.Flush()
		for {
			if _, err := b.Receive(); err != nil {
				return
			}
		}
	})
	_, pool := poolOf(t, hostOf("postgres://app:"+sentinel+"@"+address+"/app?sslmode=disable&pool_max_conns=10"), nil)
	began := time.Now()
	try := func() error {
		conn, err := pool.Acquire(t.Context())
		if err == nil {
			_ = conn.Conn().Close(t.Context())
			conn.Release()
		}
		return err
	}
	for range 200 {
		if err := try(); err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "asks for 10000000 iterations") {
			t.Fatalf("got %v", err)
		}
	}
	if n, most := logins.Load(), 1+int64(time.Since(began)/time.Second); n > most {
		t.Errorf("%d logins in %s, expected %d at most", n, time.Since(began), most)
	}
	mended.Store(true)
	for try() != nil {
		if time.Since(began) > time.Minute {
			t.Fatal("it is suspect for good")
		}
	}
	if err := try(); err != nil { // at once
		t.Errorf("after a login: got %v", err)
	}
}
