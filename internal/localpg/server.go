package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
)

// ErrStopped is returned by the methods of a Server after Stop.
var ErrStopped = errors.New("the server was stopped")

// errNotOurs is the error of what a server that came by its DSN cannot do.
var errNotOurs = fmt.Errorf("the server came by its DSN and is not ours: %w", errors.ErrUnsupported)

// A Server is one Postgres server. It is safe for concurrent use.
type Server struct {
	source  Source
	version string
	keep    bool
	logger  *slog.Logger
	engine  engine.Engine

	mu        sync.Mutex // held while a method changes the server; guards the fields below
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
func (s *Server) DSN(database string) string { return s.engine.DSN().Database(database) }

// Describe returns one line for people, as in "PostgreSQL 15.18 from /usr/lib/postgresql/15/bin, port 40123". It contains no
// password.
func (s *Server) Describe() string {
	origin, place := s.engine.Describe()
	return fmt.Sprintf("PostgreSQL %s %s, %s", s.version, origin, place)
}

// PID returns the process ID of the server's first process, or 0 if it does not run or is not a child of this process.
func (s *Server) PID() int { return s.engine.PID() }

// DataDir returns the server's data directory, or "" if it has none on this machine that is ours.
func (s *Server) DataDir() string { return s.engine.DataDir() }

// Log returns the last lines of the server's log, or "" if it cannot be read.
func (s *Server) Log(ctx context.Context) string { return s.engine.Log(ctx) }

// change calls fn while no other method changes the server. It returns ErrStopped after Stop, and names the operation in other
// errors.
func (s *Server) change(operation string, fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	if err := fn(); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

// CreateDatabase creates an empty database and returns a connection string for it. On a server that came by its DSN,
// Stop drops it. If ctx ends before the server has the statement, nothing is created. After that ctx has no effect, so that
// no unknown database is left.
func (s *Server) CreateDatabase(ctx context.Context, name string) (string, error) {
	err := s.change(fmt.Sprintf("create database %q", name), func() error {
		if err := createDatabase(ctx, s.engine.DSN(), name); err != nil {
			return err
		}
		s.databases = append(s.databases, name)
		return nil
	})
	if err != nil {
		return "", err
	}
	return s.DSN(name), nil
}

// Kill ends all processes of the server at once with SIGKILL and returns when they are gone. Nothing is removed: Restart starts
// the server again. The error is errors.ErrUnsupported for a server that came by its DSN, which is not ours to kill.
func (s *Server) Kill(ctx context.Context) error {
	return s.change("kill Postgres", func() error {
		if err := s.engine.Kill(ctx); err != nil {
			return err
		}
		s.running = false
		return nil
	})
}

// Restart starts the server again on the same port and the same data after Kill. It first shuts down a server that runs, in
// good order. It returns when the server answers; ctx governs all of it. After an error the server does not run, and
// Restart may be called again. The error is errors.ErrUnsupported for a server that came by its DSN.
func (s *Server) Restart(ctx context.Context) error {
	return s.change("restart Postgres", func() error {
		if s.source == DSN {
			return errNotOurs
		}
		if s.running {
			s.running = false
			if err := s.engine.Shutdown(ctx); err != nil {
				return err
			}
		}
		err := s.engine.Start(ctx)
		s.running = err == nil
		return err
	})
}

// Freeze stops all processes of the server, as on a machine that hangs: its connections stay open and nothing answers. Thaw
// lets them continue. Kill and Stop also work on a frozen server. The error is errors.ErrUnsupported for a server that came by
// its DSN.
func (s *Server) Freeze(ctx context.Context) error {
	return s.change("freeze Postgres", func() error { return s.engine.Freeze(ctx) })
}

// Thaw lets a frozen server continue. It does nothing to one that is not frozen.
func (s *Server) Thaw(ctx context.Context) error {
	return s.change("thaw Postgres", func() error { return s.engine.Thaw(ctx) })
}

// Stop ends the server, breaking its connections, and removes its files. On a server that came by its DSN it only drops the
// databases that CreateDatabase made. With Config.Keep it does neither. Since nothing of the server remains, Stop does not shut
// it down in good order. Stop does its work even if ctx has ended. Only the first call does anything.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	if s.keep {
		s.engine.Detach()
		return nil
	}
	err := cleanup.Do(ctx, func(ctx context.Context) error {
		var dropped error
		if s.source == DSN && len(s.databases) > 0 {
			dropped = dropDatabases(ctx, s.engine.DSN(), s.databases)
		}
		return errors.Join(dropped, s.engine.Remove(ctx))
	})
	if err != nil {
		return fmt.Errorf("stop Postgres: %w", err)
	}
	s.logger.DebugContext(ctx, "postgres stopped", slog.String("source", s.source))
	return nil
}
