package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// ErrStopped is returned by the methods of a Server that Stop has been called on.
var ErrStopped = errors.New("the server was stopped")

// cleanupLimit bounds clean-up that goes on after the caller's context has ended.
const cleanupLimit = 2 * time.Minute

// shutdownLimit is the time for a server to shut down, before it is killed.
const shutdownLimit = time.Minute

// engine is a way of running a server. Its methods are not called concurrently, save log.
type engine interface {
	// start starts the server, which does not run, and waits until it answers.
	start(ctx context.Context) error
	// kill ends the server with SIGKILL and waits until it is gone.
	kill(ctx context.Context) error
	// shutdown ends the server with a fast shutdown; it is gone when shutdown returns, with whatever error.
	shutdown(ctx context.Context) error
	// remove ends the server in the quickest way that leaves nothing, and removes all that the engine has.
	remove(ctx context.Context) error
	// detach lets go of a server that is kept; no other method is called after it, save those below.
	detach()

	conn() connString
	describe() (origin, place string)
	pid() int
	dataDir() string
	log(ctx context.Context) string
}

// A Server is one Postgres server. It is safe for concurrent use.
type Server struct {
	source  Source
	version string
	keep    bool
	logger  *slog.Logger
	engine  engine

	mu        sync.Mutex // held for the length of Kill, Restart and Stop; guards what follows
	running   bool
	stopped   bool
	databases []string // created on a server that is not ours
}

// Source returns where the server came from.
func (s *Server) Source() Source { return s.source }

// Version returns the server's version as in "15.18".
func (s *Server) Version() string { return s.version }

// DSN returns a connection string for the database, with the password in it. It is a URL, unless the server came by a
// DSN of keywords and values.
func (s *Server) DSN(database string) string { return s.engine.conn().database(database) }

// Describe returns one line for people, as in "PostgreSQL 15.18 from /usr/lib/postgresql/15/bin, port 40123". There is
// no password in it.
func (s *Server) Describe() string {
	origin, place := s.engine.describe()
	return fmt.Sprintf("PostgreSQL %s %s, %s", s.version, origin, place)
}

// PID returns the process ID of the server's first process, or 0 if it does not run or is not a child of this process.
func (s *Server) PID() int { return s.engine.pid() }

// DataDir returns the server's data directory, or "" if it has none on this machine that is ours.
func (s *Server) DataDir() string { return s.engine.dataDir() }

// Log returns the last lines of the server's log, or "" if the log cannot be had.
func (s *Server) Log(ctx context.Context) string { return s.engine.log(ctx) }

// Kill ends all processes of the server at once with SIGKILL and returns when they
// are gone. Nothing is removed: Restart starts the server again. A server that came by its DSN is not ours to kill:
// the error is then errors.ErrUnsupported.
func (s *Server) Kill(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	if err := s.engine.kill(ctx); err != nil {
		return fmt.Errorf("kill Postgres: %w", err)
	}
	s.running = false
	return nil
}

// Restart starts the server again on the same port and the same data after Kill; a server that runs is shut down in
// good order first. It returns when the server answers; ctx governs all of it. After an error the server does not run, and
// Restart may be called again. A server that came by its DSN is not ours to restart: the error is then
// errors.ErrUnsupported.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	if s.source == DSN {
		return fmt.Errorf("restart Postgres: %w", errNotOurs)
	}
	if s.running {
		s.running = false
		if err := s.engine.shutdown(ctx); err != nil {
			return fmt.Errorf("restart Postgres: %w", err)
		}
	}
	if err := s.engine.start(ctx); err != nil {
		return fmt.Errorf("restart Postgres: %w", err)
	}
	s.running = true
	return nil
}

// Stop ends the server, breaking its connections, and removes its files; of a server that came by its DSN it drops the
// databases that CreateDatabase made. With Config.Keep it does neither. As nothing of the server is left, it is not shut
// down in good order but at once. Stop does its work even if ctx has ended. Only the first call does anything.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	if s.keep {
		s.engine.detach()
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	if err := errors.Join(s.dropDatabases(limited), s.engine.remove(limited)); err != nil {
		return fmt.Errorf("stop Postgres: %w", err)
	}
	s.logger.DebugContext(ctx, "postgres stopped", slog.String("source", s.source))
	return nil
}
