package engine

import (
	"errors"
	"runtime"
	"strings"
)

// ErrUnavailable is in the chain of errors that say what this machine lacks to run a server.
var ErrUnavailable = errors.New("no Postgres available")

// UnavailableErrors are the reasons why sources of a server are unavailable. The text is one line; for several reasons it also says
// what to install.
type UnavailableErrors []error

// Unavailable marks such an error.
func Unavailable(err error) error { return UnavailableErrors{err} }

// NoBinaries returns the error of a system without support for servers from binaries.
func NoBinaries() error {
	return Unavailable(errors.New("servers from binaries are not supported on " + runtime.GOOS))
}

func (e UnavailableErrors) Error() string {
	var reasons []string
	for _, err := range e {
		reasons = append(reasons, strings.Join(strings.Fields(err.Error()), " "))
	}
	if len(reasons) == 1 {
		return reasons[0]
	}
	return ErrUnavailable.Error() + ": " + strings.Join(reasons, ", ") +
		"; install Debian's postgresql package, or Docker, or set KILOSHARD_POSTGRES_DSN"
}

// Unwrap returns ErrUnavailable and the reasons.
func (e UnavailableErrors) Unwrap() []error { return append([]error{ErrUnavailable}, e...) }
