package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// The limits of what goes on after the caller's context has ended, and of how long a server may take to cancel.
const (
	cleanUpLimit = 30 * time.Second
	cancelLimit  = 5 * time.Second
)

// open opens a session in which names mean Postgres's own, values are written in one way on all hosts, and commits are on
// disk when they return. adjust may change its config.
func open(ctx context.Context, host shards.Host, adjust ...func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	conn, err := connect.Open(ctx, host, func(cfg *pgx.ConnConfig) {
		for name, value := range map[string]string{
			"application_name": "kiloshard move",

			// The host serves others meanwhile.
			"max_parallel_workers_per_gather":  "0",
			"max_parallel_maintenance_workers": "0",

			// A mover that vanishes without a word is gone for the server, with its locks, after some 25 s.
			"tcp_keepalives_idle":     "10",
			"tcp_keepalives_interval": "5",
			"tcp_keepalives_count":    "3",
			"tcp_user_timeout":        "25s",
		} {
			cfg.RuntimeParams[name] = value
		}
		cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelLimit}
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

// openBoth opens a session on each of two hosts, at the same time. After an error one of them may be open.
func openBoth(ctx context.Context, source, target shards.Host) (from, to *pgx.Conn, err error) {
	var group errgroup.Group
	group.Go(func() (err error) { from, err = open(ctx, source); return err })
	group.Go(func() (err error) { to, err = open(ctx, target); return err })
	err = group.Wait()
	return from, to, err
}

// closeConn ends a session, also when ctx has ended.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
	defer cancel()
	_ = conn.Close(ctx) // nothing is left to lose in it
}

// begun begins a transaction in which each statement sees what others have committed before it: a snapshot from before a lock would
// miss what its holder was waited for.
func begun(ctx context.Context, conn *pgx.Conn) (pgx.Tx, error) {
	return conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, DeferrableMode: pgx.NotDeferrable})
}

// inTx runs fn in a transaction. If that comes to nothing, the session can be used, also once ctx has ended: a COMMIT or a ROLLBACK that
// is not sent for that reason would close it.
func inTx(ctx context.Context, conn *pgx.Conn, fn func(tx pgx.Tx) error) error {
	tx, err := begun(ctx, conn)
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

// ErrBusy says that somebody else migrates or moves a shard.
var ErrBusy = errors.New("the shard is being migrated, or moved by another program")

// errMoverAtWork is ErrBusy because of a mover that is alive.
var errMoverAtWork = fmt.Errorf("%w: another mover is at work on it: interrupt that mover first", ErrBusy)

// lockWait is how long a move waits for a shard's lock: a mover that was killed a moment ago may still have it.
// Tests wait less.
var lockWait = 10 * time.Second

// lockShard takes a shard's advisory lock for the session, by polling, since a statement that waits holds a snapshot. Anybody
// can take that lock, so it counts where its holder may create in the schema; what keeps others out for certain is enterAlone
// and claim.
func lockShard(ctx context.Context, conn *pgx.Conn, turn sql.ShardTurn) error {
	return named(ctx, conn, turn, wait(ctx, lockWait, slowly, ErrBusy, func() (bool, error) {
		got, err := last(ctx, conn, turn.Mark())
		return got == "true", err
	}))
}

// named adds to [ErrBusy] who works on the shard.
func named(ctx context.Context, conn *pgx.Conn, turn sql.ShardTurn, err error) error {
	if !errors.Is(err, ErrBusy) {
		return err
	}
	holders, asked := last(ctx, conn, turn.Holders())
	switch {
	case asked == nil && strings.Contains(holders, "(kiloshard move,"):
		return errMoverAtWork
	case asked == nil && holders != "":
		return fmt.Errorf("%w: %s", err, holders)
	}
	return err
}

// last runs statements and returns the first value of the last one's row.
func last(ctx context.Context, conn *pgx.Conn, statements string) (string, error) {
	results, err := conn.PgConn().Exec(ctx, statements).ReadAll()
	if err != nil {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}

// The longest pauses of wait: while writers are held up, and else.
const (
	quickly = 2 * time.Millisecond
	slowly  = 100 * time.Millisecond
)

// wait calls ready until it returns true, with pauses that grow up to longest. It returns late after limit, 0 for none.
func wait(ctx context.Context, limit, longest time.Duration, late error, ready func() (bool, error)) error {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, longest) {
		done, err := ready()
		switch {
		case done || err != nil:
			return err
		case limit > 0 && time.Since(began) > limit:
			return fmt.Errorf("%w: waited %s", late, limit)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run runs statements as one message, and so as one transaction unless they say otherwise.
func run(ctx context.Context, conn *pgx.Conn, statements string) error {
	_, err := conn.PgConn().Exec(ctx, statements).ReadAll()
	if err != nil && !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		rollback, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit) // ctx may have ended by now
		defer cancel()
		if _, rollbackErr := conn.PgConn().Exec(rollback, "ROLLBACK").ReadAll(); rollbackErr != nil {
			closeConn(ctx, conn)
		}
	}
	return err
}

// texts returns the one column of a query's rows.
func texts(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// name writes an identifier, with its schema if there are two parts.
func name(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// code returns the SQLSTATE of an error, empty for none.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
