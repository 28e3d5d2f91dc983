package cli

import (
	"io"
	"time"
)

// unhindered is an output for a caller that must not wait. A terminal stopped by Ctrl-S, or a pipe without a reader, blocks its
// writers.
type unhindered struct {
	queue chan any // []byte to write, or a chan struct{} to close
}

// unhinderedLines is how many lines may wait; more are lost.
const unhinderedLines = 10_000

// newUnhindered returns an output that hands on to another one, until the program ends.
func newUnhindered(to io.Writer) *unhindered {
	u := &unhindered{queue: make(chan any, unhinderedLines)}
	go func() {
		for next := range u.queue {
			switch next := next.(type) {
			case []byte:
				_, _ = to.Write(next) // a line that is lost is no error
			case chan struct{}:
				close(next)
			}
		}
	}()
	return u
}

// Write takes a line.
func (u *unhindered) Write(p []byte) (int, error) {
	select {
	case u.queue <- append([]byte(nil), p...):
	default:
	}
	return len(p), nil
}

// flush returns when all is written, or after two seconds.
func (u *unhindered) flush() {
	limit := time.After(2 * time.Second)
	written := make(chan struct{})
	select {
	case u.queue <- written:
	case <-limit:
		return
	}
	select {
	case <-written:
	case <-limit:
	}
}
