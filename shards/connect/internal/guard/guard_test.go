package guard

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
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
			got, err := io.ReadAll(&guard{
				from: by(bytes.NewReader(sent)), turn: turn{taken: make(chan struct{}, 1), limit: time.Second}, want: headLength, report: func(error) {},
			})
			switch {
			case test.refused == "" && (err != nil || !bytes.Equal(got, sent)):
				t.Errorf("%s, %s: got %d of %d bytes, %v", test.name, cut, len(got), len(sent), err)
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("%s, %s: got %v, expected %q", test.name, cut, err, test.refused)
			}
		}
	}
}
