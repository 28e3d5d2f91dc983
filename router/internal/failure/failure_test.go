package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

// down returns an error about a host that is down, as package router makes one.
func down(cause error) error { return fmt.Errorf("%w: %w", failure.ErrHostDown, cause) }

// TestMayHaveRun checks that a statement that was not sent has not run, and that one whose connection was lost may have.
func TestMayHaveRun(t *testing.T) {
	t.Parallel()
	starting := &pgconn.PgError{Code: "57P03", Severity: "FATAL"}
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"the host is down", &shards.HostError{Host: "pg-a", Err: down(io.EOF)}, false},
		{"the host is down since it starts", &shards.HostError{Host: "pg-a", Err: down(starting)}, false},
		{"no connection", &shards.HostError{Host: "pg-a", Err: starting}, false},
		{"lost", &shards.ShardError{Host: "pg-a", Err: fmt.Errorf("%w: %w", failure.ErrLost, io.EOF)}, true},
		{"ended by the server", &shards.ShardError{Host: "pg-a", Err: fmt.Errorf("%w: %w", failure.ErrLost, &pgconn.PgError{Code: "53300", Severity: "FATAL"})}, true},
		{"cancelled", &shards.ShardError{Host: "pg-a", Err: &pgconn.PgError{Code: "57014"}}, true},
		{"refused", &shards.ShardError{Host: "pg-a", Err: &pgconn.PgError{Code: "23505"}}, false},
		{"read only", &shards.ShardError{Host: "pg-a", Err: &pgconn.PgError{Code: "25006"}}, false},
		{"something else", errors.New("something else"), true},
	} {
		if got := failure.MayHaveRun(test.err); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
}

// TestSafeToRetry tries an error of each kind. A retry of a statement that may have run is never safe.
func TestSafeToRetry(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}
	for _, test := range []struct {
		name       string
		err        error
		lost, safe bool
	}{
		{"none", nil, false, false},
		{"a reset connection", reset, true, false},
		{"closed already", pgconn.ErrConnClosed, true, false},
		{"closed before it was of use", &shards.HostError{Host: "pg-a", Err: errors.Join(&pgconn.ConnectError{Config: &pgconn.Config{}}, pgconn.ErrConnClosed)}, false, true},
		{"before the statement", failure.BeforeSend(reset), false, true},
		{"the end of the context", fmt.Errorf("%w: %w", context.Canceled, reset), false, false},
		{"ended by the server", &pgconn.PgError{Code: "57P01", Severity: "FATAL"}, true, false},
		{"ended by a server that speaks French", &pgconn.PgError{Code: "57P01", Severity: "FATALE", SeverityUnlocalized: "FATAL"}, true, false},
		{"idle for too long", &pgconn.PgError{Code: "57P05", Severity: "FATAL"}, false, true},
		{"a deadlock", &pgconn.PgError{Code: "40P01", Severity: "ERROR"}, false, true},
		{"a deadlock at a COMMIT of unknown outcome", fmt.Errorf("%w: %w", failure.ErrOutcomeUnknown, &pgconn.PgError{Code: "40P01"}), false, false},
		{"a duplicate", &pgconn.PgError{Code: "23505", Severity: "ERROR"}, false, false},
		{"the host is down", &shards.HostError{Host: "pg-a", Err: down(errors.New("refused"))}, false, true},
		{"lost and said so", failure.WithLost(reset), true, false},
	} {
		if got := failure.Lost(test.err); got != test.lost {
			t.Errorf("%s: lost %t, want %t", test.name, got, test.lost)
		}
		if got := failure.SafeToRetry(test.err); got != test.safe {
			t.Errorf("%s: safe to retry %t, want %t", test.name, got, test.safe)
		}
	}
	if twice := failure.WithLost(failure.WithLost(reset)); twice.Error() != failure.WithLost(reset).Error() {
		t.Errorf("said twice: %v", twice)
	}
}

// TestNotCommitted tries each way a COMMIT can fail. Only an error before the point of no return means that nothing was
// committed.
func TestNotCommitted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"a deferred constraint", &pgconn.PgError{Code: "23503", Severity: "ERROR"}, true},
		{"rolled back", pgx.ErrTxCommitRollback, true},
		{"idle for too long", &pgconn.PgError{Code: "25P03", Severity: "FATAL"}, true},
		{"ended by the server", &pgconn.PgError{Code: "57P01", Severity: "FATAL"}, false},
		{"a panic", &pgconn.PgError{Code: "58030", Severity: "PANIC"}, false},
		{"lost", io.ErrUnexpectedEOF, false},
		{"closed", pgconn.ErrConnClosed, false},
		{"the end of the context", context.DeadlineExceeded, false},
	} {
		if got := failure.NotCommitted(test.err); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
}
