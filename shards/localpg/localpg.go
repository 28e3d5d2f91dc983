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
	"log/slog"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// Config says which server to start. Its zero value starts the first that is available, with settings for temporary data.
type Config struct {
	// Source is the only source to try. Defaults to DSN if one is given, else to the first of Local, Docker and
	// Download that is available.
	Source Source

	// DSN is a server that the caller has, as a URL or as keywords and values. Its user must be allowed to create
	// databases.
	DSN string

	// Settings are server settings as in postgresql.conf, over those of this package: max_connections 200,
	// shared_buffers 256MB, min_wal_size 80MB, max_wal_size 512MB. Not with a DSN.
	Settings map[string]string

	// Keep leaves the server running and its files in place on Stop, and does not tie it to this process's life.
	// Databases created on a server given by its DSN are left, too.
	Keep bool

	// Dir is the parent of the data directory; the user that the server runs as must be able to enter it. Defaults to
	// /dev/shm, in memory, for a server that has fsync off, is not kept, and finds 8 GiB free there; else to os.TempDir,
	// and for Docker to a volume. For Docker only root can use it, and the daemon must be on this machine.
	Dir string

	// BinDir is the only place to look for server binaries. Defaults to the PATH and the usual places. For Local.
	BinDir string

	// Env is added to the environment of the server process, which is otherwise only LC_ALL=C; in the form of
	// os.Environ. For Local and Download.
	Env []string

	// Image is the container image. Defaults to postgres:17.
	Image string

	// DownloadURL is the Maven repository that builds are downloaded from. Defaults to that of
	// embedded-postgres.
	DownloadURL string

	// CacheDir is where downloaded builds and templates of initdb are kept. Defaults to kiloshard in os.UserCacheDir;
	// for root, whose cache the server's user cannot reach, to /var/cache/kiloshard.
	CacheDir string

	// Logger gets what is tried and what is started. Defaults to none.
	Logger *slog.Logger
}

// Source says where a server comes from.
type Source = string

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
	server, err := localpg.Start(ctx, localpg.Config(cfg))
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
