package session

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// LeaveLimit is how long a caller whose context has ended waits until the server has cancelled its statement. After that the
// connection is closed. A server that is alive needs milliseconds. One that is busy with new processes may need a hundred, and
// a connection that is closed then costs it three more: pgx's own cancel request, a new connection, and soon the next cancel
// request that comes too late.
const LeaveLimit = 500 * time.Millisecond

// leaving decides what happens to a connection when the context of a call ends. pgx closes it, and the next caller needs a new one,
// which costs the server and the router many times what a statement does. A statement in a transaction of its own is canceled
// instead.
type leaving struct {
	ctxwatch.Handler // pgx's own, for everything else
	conn             *pgconn.PgConn
	cancel           func(context.Context) error // [Session.Cancel]; nil until the session is open

	cancels   bool       // the statement that is sent now is a transaction of its own
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

// begin says that a statement is sent next, and whether it is alone: see [Scope.alone].
func (l *leaving) begin(alone bool) {
	if l != nil {
		l.cancels, l.left = alone, false
	}
}

// end returns the error of the statement. If its context ended before the server was done, that is the context's error, even if
// the server reported success. A write that is cancelled while it waits for a standby ends well, and may be lost yet.
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
	_ = l.conn.Conn().SetDeadline(time.Now().Add(LeaveLimit)) // fails only on a connection that is closed
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), LeaveLimit)
		defer cancel()
		l.cancelled <- l.cancel(ctx)
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
