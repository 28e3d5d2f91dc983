package conns

import (
	"context"
	"time"
)

// pingAfter is how long a lane may have been idle without being asked for a sign of life first, as in pgxpool; pingLimit is
// how long that may take.
const (
	pingAfter = time.Second
	pingLimit = time.Second
)

// ready reports whether the connection of a lane works, as far as is known. One that does not is closed. The error is that of
// ctx, or of the pool's PrepareConn.
func (l *lane) ready(ctx context.Context) (bool, error) {
	if time.Since(l.freed) > pingAfter && !l.session.Broken() {
		limited, cancel := context.WithTimeout(ctx, pingLimit)
		err := l.lease.Conn().Ping(limited)
		cancel()
		if err != nil && ctx.Err() != nil {
			return false, err
		} // else the connection is closed
	}
	if l.session.Ended() {
		_ = l.lease.Conn().Close(ctx) // an error leaves it closed, too
	}
	if l.session.Broken() {
		return false, nil
	}
	if l.prepareConn == nil {
		return true, nil
	}
	ok, err := l.prepareConn(ctx, l.lease.Conn())
	if !ok {
		_ = l.lease.Conn().Close(ctx) // an error leaves it closed, too
	}
	return ok, err
}

// putBack puts requests that were not sent, because the lane's connection does not work, back into its queue, from which they go
// to other lanes. Those whose callers have left are over.
func (l *lane) putBack(requests []*Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var back []*Request
	for _, r := range requests {
		if r.settled.Load() {
			l.over(r)
			continue
		}
		r.state, r.queue, r.group = requestQueued, l, nil
		back = append(back, r)
	}
	l.queue = append(back, l.queue...)
}
