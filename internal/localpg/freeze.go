package localpg

import (
	"context"
	"errors"
	"fmt"
)

// freezer is an engine that can stop its server's processes where they are.
type freezer interface {
	freeze(ctx context.Context) error
	thaw(ctx context.Context) error
}

var errNoFreeze = fmt.Errorf("it cannot be frozen here: %w", errors.ErrUnsupported)

// Freeze stops all processes of the server where they are, as on a machine that hangs: its connections stay and nothing
// answers. Thaw has them go on. Kill and Stop work on a frozen server too. The error is errors.ErrUnsupported for a
// server that came by its DSN, and ErrStopped after Stop.
func (s *Server) Freeze(ctx context.Context) error { return s.stopOrGo("freeze", freezer.freeze, ctx) }

// Thaw has a server go on that was frozen. For one that was not, it does nothing.
func (s *Server) Thaw(ctx context.Context) error { return s.stopOrGo("thaw", freezer.thaw, ctx) }

func (s *Server) stopOrGo(what string, do func(freezer, context.Context) error, ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	f, ok := s.engine.(freezer)
	if !ok {
		return fmt.Errorf("%s Postgres: %w", what, errNoFreeze)
	}
	if err := do(f, ctx); err != nil {
		return fmt.Errorf("%s Postgres: %w", what, err)
	}
	return nil
}
