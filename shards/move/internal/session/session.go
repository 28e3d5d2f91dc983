// Package session opens the sessions of a mover, and runs statements in them.
package session

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// The limits of work after the caller's context has ended, and of how long a server may take to cancel a statement.
const (
	CleanUpLimit = 30 * time.Second
	CancelLimit  = 5 * time.Second
)

// Mover is the application_name of a mover's sessions.
const Mover = "kiloshard move"

// Open opens a session in which names mean Postgres's own, values are written in one way on all hosts, and commits are on
// disk when they return. adjust may change its config. The error is a [shards.HostError].
func Open(ctx context.Context, host shards.Host, adjust ...func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	conn, err := connect.Open(ctx, host, func(cfg *pgx.ConnConfig) {
		for name, value := range map[string]string{
			"application_name": Mover,

			// The host serves others meanwhile.
			"max_parallel_workers_per_gather":  "0",
			"max_parallel_maintenance_workers": "0",

			// After a network failure the server ends the session, and releases its locks, within about 25 s.
			"tcp_keepalives_idle":     "10",
			"tcp_keepalives_interval": "5",
			"tcp_keepalives_count":    "3",
			"tcp_user_timeout":        "25s",
		} {
			cfg.RuntimeParams[name] = value
		}
		cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: CancelLimit}
		}
		for _, fn := range adjust {
			fn(cfg)
		}
	})
	if err != nil {
		return nil, &shards.HostError{Host: host.Name, Err: err}
	}
	return conn, nil
}

// OpenBoth opens a session on each of two hosts, at the same time. After an error one of them may be open.
func OpenBoth(ctx context.Context, source, target shards.Host) (from, to *pgx.Conn, err error) {
	var group errgroup.Group
	group.Go(func() (err error) { from, err = Open(ctx, source); return err })
	group.Go(func() (err error) { to, err = Open(ctx, target); return err })
	err = group.Wait()
	return from, to, err
}

// Close ends sessions, also when ctx has ended. Some of them may be nil.
func Close(ctx context.Context, conns ...*pgx.Conn) {
	for _, conn := range conns {
		if conn != nil {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), CancelLimit)
			_ = conn.Close(closing) // its work is done, or lost
			cancel()
		}
	}
}

// Begin begins a transaction in which each statement sees what others have committed before it: a snapshot taken before the wait for a
// lock would miss what the lock's holder has written.
func Begin(ctx context.Context, conn *pgx.Conn) (pgx.Tx, error) {
	return conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, DeferrableMode: pgx.NotDeferrable})
}

// InTx runs fn in a transaction, and commits it unless fn fails or ctx has ended. After an error the session can be used: pgx closes it if it does
// not send a COMMIT or ROLLBACK because ctx has ended.
func InTx(ctx context.Context, conn *pgx.Conn, fn func(tx pgx.Tx) error) error {
	tx, err := Begin(ctx, conn)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := fn(tx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return tx.Commit(ctx)
}
