package session

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// leaveLimit is how long a caller whose context has ended waits for the server to cancel its statement. After that the
// connection is closed.
const leaveLimit = 50 * time.Millisecond

// leaving is what becomes of a connection when the context of a call ends. pgx closes it, and the next caller needs a new
// one, which costs the server and us many times what a statement does. A statement by itself is cancelled instead.
type leaving struct {
	ctxwatch.Handler // pgx's own, for everything else
	conn             *pgconn.PgConn

	cancels   bool       // what is sent now is a statement by itself
	left      bool       // the context of its caller has ended
	cancelled chan error // of Cancel, while that is under way
	late      bool       // a cancel request may arrive later
}

// leavingKey is where a connection's leaving stands in its custom data.
const leavingKey = "kiloshard leaving"

// WatchLeaving has statements cancelled whose callers leave. A handler of the config that is not pgx's default stays.
func WatchLeaving(config *pgconn.Config) {
	build := config.BuildContextWatcherHandler
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		handler := build(conn)
		if own, ok := handler.(*pgconn.DeadlineContextWatcherHandler); !ok || own.DeadlineDelay > 0 {
			return handler
		}
		l := &leaving{Handler: handler, conn: conn}
		conn.CustomData()[leavingKey] = l
		return l
	}
}

// leavingOf returns the leaving of a connection, nil if it has none.
func leavingOf(conn *pgconn.PgConn) *leaving {
	l, _ := conn.CustomData()[leavingKey].(*leaving)
	return l
}

// begin says that a statement is sent next. One in a caller's transaction is not cancelled: what the caller sends after it
// must not run.
func (l *leaving) begin(sc Scope) {
	if l != nil {
		l.cancels, l.left = !sc.held && !sc.opens && sc.ends == nil, false
	}
}

// end returns the error of the statement: that of its context if that has ended before the server was done, whatever the server
// says. A write that is cancelled while it waits for a standby ends well, and may be lost yet.
func (l *leaving) end(ctx context.Context, err error) error {
	if l == nil {
		return err
	}
	l.cancels = false
	if l.left {
		return ctx.Err()
	}
	return err
}

// HandleCancel is called by pgx when the context of a call has ended.
func (l *leaving) HandleCancel(ctx context.Context) {
	if !l.cancels {
		l.Handler.HandleCancel(ctx)
		return
	}
	l.left, l.cancelled = true, make(chan error, 1)
	_ = l.conn.Conn().SetDeadline(time.Now().Add(leaveLimit)) // fails only on a connection that is closed
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
		defer cancel()
		l.cancelled <- Cancel(ctx, l.conn)
	}()
}

// HandleUnwatchAfterCancel is called by pgx when a call is over whose context had ended.
func (l *leaving) HandleUnwatchAfterCancel() {
	if l.cancelled != nil {
		l.late = <-l.cancelled != nil || l.late
		l.cancelled = nil
	}
	l.Handler.HandleUnwatchAfterCancel()
}

// Cancel has the server cancel what it does for a connection. Without an error the request has reached the server's process,
// and what is sent later is safe from it: Postgres passes it on before it closes the connection on which it came.
func Cancel(ctx context.Context, conn *pgconn.PgConn) error {
	if err := conn.CancelRequest(ctx); err != nil {
		return err
	}
	return ctx.Err() // for which pgx returns nil
}
