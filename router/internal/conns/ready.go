package conns

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/failure"

	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// pingAfter is how long a lane may have been idle without being asked for a sign of life first, as in pgxpool; pingLimit is
// how long that may take.
const (
	pingAfter = time.Second
	pingLimit = time.Second
)

// ready gives a caller's lane a connection that works. After an error the lane is still the caller's.
func (l *lane) ready(ctx context.Context) error {
	for {
		if l.lease != nil && time.Since(l.freed) > pingAfter && !l.session.Broken() {
			limited, cancel := context.WithTimeout(ctx, pingLimit)
			err := l.lease.Conn().Ping(limited)
			cancel()
			if err != nil && ctx.Err() != nil {
				return err
			} // else the connection is closed
		}
		if l.lease != nil && l.session.Broken() {
			_ = l.lease.Conn().Close(ctx) // whatever it says, the connection is closed
			l.lease.Release()
			l.lease, l.session = nil, nil
		}
		if l.lease == nil {
			if err := l.connect(ctx); err != nil {
				return err
			}
		}
		if l.prepareConn == nil {
			return nil
		}
		ok, err := l.prepareConn(ctx, l.lease.Conn())
		if !ok {
			_ = l.lease.Conn().Close(ctx) // whatever it says, the connection is closed
		}
		if err != nil || ok {
			return err
		}
	}
}

func (l *lane) connect(ctx context.Context) error {
	err := l.tryConnect(ctx)
	if errors.Is(err, session.ErrPooled) {
		err = l.tryConnect(ctx)
	}
	if err != nil {
		l.primary.Failed(err)
	} else {
		l.primary.Connected()
	}
	return err
}

func (l *lane) tryConnect(ctx context.Context) error {
	var lease *pgxpool.Conn
	err := l.login.Try(ctx, func(ctx context.Context) (err error) {
		lease, err = l.pool.Acquire(ctx)
		return err
	})
	if err != nil {
		var none *connect.Error
		var refused *pgconn.ConnectError
		if !errors.As(err, &none) && !errors.As(err, &refused) { // the connection was made, and may have been lost at once
			err = failure.BeforeSend(err)
		}
		return err
	}
	session, err := session.Open(ctx, lease.Conn(), l.Host)
	if err != nil {
		_ = lease.Conn().Close(ctx) // whatever it says, the connection is closed
		lease.Release()
		return failure.BeforeSend(err)
	}
	l.lease, l.session = lease, session
	l.expires = time.Now().Add(l.lifetime + rand.N(l.jitter+1))
	return nil
}
