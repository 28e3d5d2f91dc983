// Package localpg starts temporary Postgres servers on this machine, for tests and demos of services.
//
// [Start] takes the first of four sources that is available: a server that the caller has ([DSN]), server binaries on
// this machine ([Local]), a container ([Docker]), or a build that it downloads ([Download]). If none is, the error is one
// line that says what was tried and what to install.
//
// A server from Local or Download runs with fsync=on, one from Docker with fsync=off. On Linux a server ends with this
// process, even if that is killed; the next Start with the same Config.Dir removes the files that remain. Postgres
// does not run as root: started by root, the server runs as the user postgres, or nobody. It listens on 127.0.0.1 only, and
// its only role is postgres, a superuser with a random password.
package localpg

import (
	"context"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// Config says which server to start. Its zero value starts the first that is available, with settings for temporary data.
type Config = localpg.Config

// Source says where a server comes from.
type Source = localpg.Source

// The sources, in the order in which they are tried.
const (
	DSN      = localpg.DSN      // a server that the caller has
	Local    = localpg.Local    // server binaries on this machine
	Docker   = localpg.Docker   // a container
	Download = localpg.Download // a downloaded build
)

var (
	// ErrUnavailable says that no server is available from a source, or from any.
	ErrUnavailable = localpg.ErrUnavailable

	// ErrStopped says that a server was stopped.
	ErrStopped = localpg.ErrStopped
)

// Server is a running server. It is safe for concurrent use.
type Server struct{ server *localpg.Server }

// Start starts a server and returns when it answers; ctx governs all of it. The caller must stop the server with
// [Server.Stop]. After an error nothing is left.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	server, err := localpg.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Server{server}, nil
}

// DSN returns a connection string for a database of the server. The database postgres always exists.
func (s *Server) DSN(database string) string { return s.server.DSN(database) }

// Describe returns where the server is and how to reach it, in one line.
func (s *Server) Describe() string { return s.server.Describe() }

// CreateDatabase creates an empty database and returns a connection string for it. On a server given by its DSN,
// Stop drops it. If ctx ends before the server has the statement, nothing is created.
func (s *Server) CreateDatabase(ctx context.Context, name string) (string, error) {
	return s.server.CreateDatabase(ctx, name)
}

// Stop stops the server and removes its files, or drops the databases on one given by its DSN. It works
// even if ctx has ended. With Config.Keep it does nothing.
func (s *Server) Stop(ctx context.Context) error { return s.server.Stop(ctx) }
