package cli

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// reader is the state of the reader of an output. A reader that goes away, such as head or a closed terminal, ends no command: later
// output is lost without an error.
type reader struct {
	mu   sync.Mutex // guards what follows
	gone chan struct{}
	err  error // of the first write that failed otherwise, such as on a full disk
}

func newReader() *reader { return &reader{gone: make(chan struct{})} }

// wrote takes the error of a write.
func (r *reader) wrote(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.EIO), errors.Is(err, io.ErrClosedPipe):
		select {
		case <-r.gone:
		default:
			close(r.gone)
		}
	case r.err == nil:
		r.err = err
	}
}

// failed returns the error of the first write that failed while the reader was there.
func (r *reader) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
