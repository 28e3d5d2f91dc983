package localpg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// A frozen server says nothing until it is thawed, and its sessions then go on.
func TestFreeze(t *testing.T) {
	t.Parallel()
	s := start(t, localpg.Config{Source: localpg.Local})
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := s.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	if err := s.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := s.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("stop a frozen server: %v", err)
	}
	if err := s.Thaw(t.Context()); !errors.Is(err, localpg.ErrStopped) {
		t.Errorf("got %v", err)
	}
}
