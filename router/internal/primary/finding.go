package primary

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/serverrole"
	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

// state is the state of an address, as a probe found it.
type state int

const (
	unprobed state = iota
	answered       // it returned its role
	alive          // it did not return its role, but is not known to be down: it refused the login, or is slow
	down           // there is no server, or the server is starting or stopping
	silent         // it sent nothing
	unknown        // this machine could not probe it
)

// report is the result of a probe.
type report struct {
	state   state
	role    serverrole.Role // if the state is answered
	err     error
	asked   time.Time
	ended   time.Time
	since   time.Time // asked of the first of consecutive reports with this role
	renewed bool      // the probe used a new connection on request
}

// errSilent is the cause if a host is down because it does not answer.
var errSilent = errors.New("it did not answer in time")

// noCredentialsError means that an address could not be probed because credentials are missing. It says nothing about the
// server.
type noCredentialsError struct{ error }

func (e noCredentialsError) Unwrap() error { return e.error }

// lacksCredentials reports whether an error is about missing credentials. With several addresses, the credentials are
// requested during the connect.
func lacksCredentials(err error) bool {
	return errors.As(err, new(noCredentialsError)) || errors.Is(err, shards.ErrNoCredentials)
}

// stateOf returns the state of an address whose probe returned err.
func stateOf(err error) state {
	var pgErr *pgconn.PgError
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case lacksCredentials(err):
		return alive
	case errors.As(err, &pgErr):
		if pgErr.Code == "57P03" {
			return down
		}
		return alive
	case isLocal(err):
		return unknown
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, net.ErrClosed):
		return silent
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return down
		}
		return silent // it says nothing about the server
	case errors.As(err, &netErr) && netErr.Timeout():
		return silent
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, new(*net.OpError)), errors.As(err, new(syscall.Errno)):
		return down
	}
	return alive // such as one whose certificate is not trusted
}

// refusedAt reports whether an error means that no server listens at the address.
func refusedAt(err error) bool {
	if code := failure.SQLState(err); code != "" { // from one of the addresses of a name
		return code == "57P03"
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout() && !isLocal(err)
}

// broken reports whether a probe lost its connection. The connection, the server or a proxy may have ended.
func broken(r report) bool {
	code := failure.SQLState(r.err)
	return r.state == down && !refusedAt(r.err) || code == "57P01" || code == "57P02"
}

// isLocal reports whether every dial in err failed because this machine has no files, ports or memory left. Such an error
// says nothing about the server. A name may have an address of a kind that this machine lacks, such as ::1, and another
// one where no server listens; then the latter counts.
func isLocal(err error) bool {
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
	switch err := err.(type) { //nolint:errorlint // it walks the error tree
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
