// Package engine is the interface between localpg and its ways to run a server.
package engine

import (
	"context"
	"log/slog"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
)

// Engine is one server. Its methods are not called concurrently, except those from DSN on.
type Engine interface {
	// Start starts the server, which does not run, and waits until it answers. After an error the server does not run.
	Start(ctx context.Context) error
	// Kill ends all processes of the server with SIGKILL and waits until they are gone.
	Kill(ctx context.Context) error
	// Shutdown ends the server with a fast shutdown. The server is gone when Shutdown returns, even with an error.
	Shutdown(ctx context.Context) error
	// Remove ends the server in the quickest way that leaves nothing, and removes all that the engine has.
	Remove(ctx context.Context) error
	// Freeze stops all processes of the server, and Thaw lets them continue.
	Freeze(ctx context.Context) error
	Thaw(ctx context.Context) error
	// Detach lets go of a server that is kept. Only the methods below are called after it.
	Detach()

	DSN() login.DSN                   // of the database postgres, or of the one that the caller's DSN names
	Describe() (origin, place string) // for people
	PID() int                         // of a child of this process that runs, or 0
	DataDir() string                  // on this machine, or ""
	Log(ctx context.Context) string   // its last lines
}

// Copier is an engine that can copy its server's data while the server runs. No server runs on the copy yet.
type Copier interface {
	Backup(ctx context.Context, logger *slog.Logger) (Copy, error)
}

// Copy is an engine with data that was copied from another server.
type Copy interface {
	Engine
	// Follow starts the server as a standby of the other server.
	Follow(ctx context.Context, name string, settings map[string]string) (version string, err error)
	// Restore starts the server so that it recovers from a WAL archive.
	Restore(ctx context.Context, settings map[string]string) (version string, err error)
}
