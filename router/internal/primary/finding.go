package primary

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

// state is what a probe has found.
type state int

const (
	unasked  state = iota
	answered       // it said what it is
	alive          // it is not known to be down, but did not say what it is: it refused the login, or is slow
	down           // there is no server, or one that is starting or stopping
	silent         // nothing came
	unknown        // this machine could not ask it
)

// report is the result of a probe.
type report struct {
	state   state
	role    role // if it answered
	err     error
	asked   time.Time
	ended   time.Time
	since   time.Time // when the first of several reports in a row was asked for that say the same of the role
	renewed bool      // it was made on a new connection, because that was wanted
}

// errSilent says why a host is down that does not answer.
var errSilent = errors.New("it did not answer in time")

// notAskedError says that an address could not be probed because credentials are missing: nothing is known about it.
type notAskedError struct{ error }

func (e notAskedError) Unwrap() error { return e.error }

// notAsked reports whether an error is for missing credentials. With several addresses they are requested while a
// connection is made.
func notAsked(err error) bool {
	return errors.As(err, new(notAskedError)) || errors.Is(err, shards.ErrNoCredentials)
}

// stateOf returns what an error says about a server that was probed.
func stateOf(err error) state {
	var pgErr *pgconn.PgError
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case notAsked(err):
		return alive
	case errors.As(err, &pgErr):
		if pgErr.Code == "57P03" {
			return down
		}
		return alive
	case ofThisMachine(err):
		return unknown
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, net.ErrClosed):
		return silent
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return down
		}
		return silent // nothing is known of the server
	case errors.As(err, &netErr) && netErr.Timeout():
		return silent
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, new(*net.OpError)), errors.As(err, new(syscall.Errno)):
		return down
	}
	return alive // such as one whose certificate is not trusted
}

// refusedAt reports whether an error says that nobody listens there.
func refusedAt(err error) bool {
	if code := failure.SQLState(err); code != "" { // at one of the addresses that a name stands for
		return code == "57P03"
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout() && !ofThisMachine(err)
}

// broken reports whether a probe lost its connection, which may be the end of that connection alone, of the server, or of
// a proxy.
func broken(r report) bool {
	code := failure.SQLState(r.err)
	return r.state == down && !refusedAt(r.err) || code == "57P01" || code == "57P02"
}

// ofThisMachine reports whether no connection was made because this machine has no files, ports or memory left, in any way
// to connect: it says nothing about the server. A name may also stand for an address of a kind that this
// machine does not have, such as ::1, beside one where nobody listens; then the latter counts.
func ofThisMachine(err error) bool {
	all := operations(err)
	for _, op := range all {
		if !outOfResources(op) {
			return false
		}
	}
	return len(all) > 0
}

func outOfResources(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// operations returns the network operations that an error consists of.
func operations(err error) (all []*net.OpError) {
	switch err := err.(type) { //nolint:errorlint // it takes an error apart
	case nil:
	case *net.OpError:
		return []*net.OpError{err}
	case interface{ Unwrap() []error }:
		for _, each := range err.Unwrap() {
			all = append(all, operations(each)...)
		}
	case interface{ Unwrap() error }:
		return operations(err.Unwrap())
	}
	return all
}
