package conns

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// openLimit is how long a lane may take to connect. It is pgx's own limit.
const openLimit = 2 * time.Minute

// openFor connects a lane that has no connection. Connecting takes milliseconds, or seconds on a busy server, so no request
// waits for this lane alone: r waits for any lane, and gets the error if there is one before it has a lane. r may be nil. The
// caller holds mu.
func (l *lane) openFor(r *Request) {
	ctx := context.Background()
	l.state, l.slow, l.opening = busy, true, true
	if r != nil {
		r.opening = true
		ctx = context.WithoutCancel(r.ctx)
	}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, openLimit)
		defer cancel()
		defer context.AfterFunc(l.open, cancel)()
		l.opened(r, l.connect(ctx))
		l.serve(l.finish())
	}()
}

// opened notes that the lane has a connection, or that none could be made: then r waits no longer.
func (l *lane) opened(r *Request, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opening = false
	if r == nil {
		return
	}
	r.opening = false
	if err != nil && r.state == requestWaiting {
		l.waiting = slices.DeleteFunc(l.waiting, func(other *Request) bool { return other == r })
		l.over(r)
		r.wake(nil, l.Failed(err))
	}
}

// insteadOf returns the lane that a request takes or waits for because the one that was chosen has no connection: one that is
// free, or for a read the one of its lanes that is likely to send first. It is nil if the request waits for any lane. The chosen
// lane connects, unless the request is a read and another lane of reads is connecting already. The caller holds mu.
func (p *Pool) insteadOf(l *lane, r *Request, not *lane) (other *lane) {
	connecting := false
	for i, at := range p.all {
		reads := i < p.reading && !r.lease
		connecting = connecting || reads && at.opening
		switch {
		case at == not || at.slow || at.state == absent:
		case at.state == idle && (other == nil || other.state != idle):
			other = at
		case reads && (other == nil || other.state == busy && p.sooner(at, other)):
			other = at
		}
	}
	switch {
	case connecting, p.closed != nil:
	case other == nil:
		l.openFor(r)
	default:
		l.openFor(nil)
	}
	return other
}

// openForWaiting connects a lane that has no connection, if a request waits for any lane and no lane connects for it. The caller
// holds mu.
func (l *lane) openForWaiting() {
	if i := slices.IndexFunc(l.waiting, func(r *Request) bool { return !r.opening }); i >= 0 {
		l.openFor(l.waiting[i])
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
		_ = lease.Conn().Close(ctx) // an error leaves it closed, too
		lease.Release()
		return failure.BeforeSend(err)
	}
	l.lease, l.session = lease, session
	l.expires = time.Now().Add(l.lifetime + rand.N(l.jitter+1))
	return nil
}
