package guard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

const (
	// loginMessageLimit is the largest message that a server may send before its identity is checked, in bytes. The largest that
	// Kiloshard expects is a strategy of 8,192 ranges. It is also the most that all messages of a login may have.
	loginMessageLimit = 4 << 20
	// loginMessages is how many messages a server may send before it is ready for a statement, and in answer to the check of its
	// identity. A login has about 20, most of them settings that it reports.
	loginMessages = 1_000
	// requestLimit is the largest request to authenticate that a server may send, in bytes.
	requestLimit = 64 << 10
	// iterationLimit is how many iterations of SCRAM a server may ask for. They take a processor about 50 ms. Postgres's
	// scram_iterations is 4,096 by default.
	iterationLimit = 200_000
	// cheapIterations are the most that any number of logins compute at a time; see [turn].
	cheapIterations = 16_384
)

// floodError says that a server sends too much before its identity is checked.
type floodError struct{ messages, bytes int }

func (e floodError) Error() string {
	return fmt.Sprintf("the server sent %d messages of %d bytes before its identity was checked: expected at most %d, of %d bytes", e.messages, e.bytes, loginMessages, loginMessageLimit)
}

// headLength is the length of a message's type and length, in bytes.
const headLength = 5

// guard reads what a server sends, and refuses what would cost the client too much, until the server is ready for a statement. It
// stands behind TLS.
type guard struct {
	from   io.Reader
	to     io.Writer
	turn   turn
	report func(refused error) // at the end: nil if nothing was refused

	ready           bool
	head            []byte                            // of the present message: its type and length, and the body of a request to authenticate
	want            int                               // the length of head when it is complete
	skip            int                               // bytes of the present message that are not looked at
	messages, bytes int                               // so far
	computed        func() (rest func(canceled bool)) // of this login's turn; nil without one
}

// Write writes to the server. What SCRAM asks for is computed then.
func (g *guard) Write(p []byte) (int, error) {
	if g.computed == nil {
		return g.to.Write(p)
	}
	rest := g.computed()
	g.computed = nil
	n, err := g.to.Write(p)
	rest(errors.Is(err, os.ErrDeadlineExceeded))
	return n, err
}

// Read reads what the server sends.
func (g *guard) Read(p []byte) (int, error) {
	n, err := g.from.Read(p)
	if g.ready {
		return n, err
	}
	refused := g.check(p[:n])
	if refused != nil || g.ready {
		g.report(refused)
	}
	if refused != nil {
		return 0, refused
	}
	return n, err
}

func (g *guard) check(data []byte) error {
	for len(data) > 0 && !g.ready {
		if g.skip > 0 {
			n := min(g.skip, len(data))
			g.skip, data = g.skip-n, data[n:]
			continue
		}
		n := min(g.want-len(g.head), len(data))
		g.head, data = append(g.head, data[:n]...), data[n:]
		var err error
		switch {
		case len(g.head) < g.want:
			return nil
		case g.want == headLength:
			err = g.begin(g.head[0], int(int32(binary.BigEndian.Uint32(g.head[1:])))-4) //nolint:gosec // as pgx reads it
		default:
			err = g.request(g.head[headLength:])
			g.want = headLength
		}
		if err != nil {
			return err
		}
		if g.want == headLength { // of the next message
			g.head = g.head[:0]
		}
	}
	return nil
}

// begin looks at the type of a message, and at the length of its body.
func (g *guard) begin(kind byte, body int) error {
	g.messages++
	g.bytes += body
	switch {
	case kind == 'Z', body < 0 || body > loginMessageLimit: // pgx itself refuses the latter
		g.ready = true
	case g.messages > loginMessages || g.bytes > loginMessageLimit:
		return floodError{g.messages, g.bytes}
	case kind == 'R' && body > requestLimit:
		return fmt.Errorf("the server sent a request to authenticate of %d bytes: expected at most %d", body, requestLimit)
	case kind == 'R' && body > 4:
		g.want += body
	default:
		g.skip = body
	}
	return nil
}

// request looks at a request to authenticate. That with code 11 continues SCRAM: r=…,s=…,i= and the iterations.
func (g *guard) request(body []byte) error {
	if binary.BigEndian.Uint32(body) != 11 {
		return nil
	}
	parts := bytes.SplitN(body[4:], []byte(","), 3)
	iterations, _ := strconv.Atoi(string(bytes.TrimPrefix(parts[len(parts)-1], []byte("i=")))) // pgx refuses what is no number
	switch {
	case iterations > iterationLimit:
		return fmt.Errorf("the server asks for %d iterations of SCRAM: expected at most %d", iterations, iterationLimit)
	case iterations > cheapIterations:
		var err error
		g.computed, err = g.turn.take()
		return err
	}
	return nil
}
