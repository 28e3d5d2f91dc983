package localpg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// A frozen server does not answer until it is thawed. Its sessions then continue.
func TestFreeze(t *testing.T) {
	t.Parallel()
	s := start(t, localpg.Config{Source: localpg.Local})
	conn := connect(t, s.DSN("postgres"))
	noError(t, s.Freeze(t.Context()))
	answered := make(chan error, 1)
	go func() { _, err := conn.Exec(t.Context(), `select 1`); answered <- err }()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if other, err := pgx.Connect(ctx, s.DSN("postgres")); err == nil {
		_ = other.Close(t.Context())
		t.Error("a frozen server lets a client in")
	}
	select {
	case err := <-answered:
		t.Fatalf("a frozen server has answered: %v", err)
	default:
	}
	noError(t, s.Thaw(t.Context()))
	noError(t, <-answered)
	noError(t, s.Freeze(t.Context()))
	noError(t, s.Stop(t.Context())) // a frozen server can be stopped
	equal(t, "stopped", errors.Is(s.Thaw(t.Context()), localpg.ErrStopped), true)
}
