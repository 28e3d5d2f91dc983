package conns

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// Close has all lines end when they are free, and waits for that until ctx ends: then their connections are closed, free or
// not, and it returns within EndLimit. Calls that wait for a line get the error, as do those that come later.
func (ls *Pool) Close(ctx context.Context, why error) {
	ls.primary.Retire(why)
	ls.mu.Lock()
	if ls.closed == nil {
		ls.closed = why
		if ls.later != nil {
			ls.later.Stop()
		}
		for _, c := range ls.waiting {
			c.wake(nil, ls.Failed(why))
		}
		ls.waiting = nil
		for _, l := range ls.all {
			if l.state == idle {
				l.end()
			}
		}
		ls.endIfEmpty()
	}
	ls.mu.Unlock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		<-ls.ended
		ls.stopping.Wait()
		ls.pool.Close()
	}()
	select {
	case <-over:
	case <-ctx.Done():
		ls.primary.Cut(why)
		select {
		case <-over:
		case <-time.After(session.EndLimit): // somebody never gives back what he was given
		}
	}
	ls.primary.Close()
	ls.Log.Info("host closed", slog.String("host", ls.Name))
}

func (ls *Pool) endIfEmpty() {
	if ls.closed != nil && !slices.ContainsFunc(ls.all, func(l *line) bool { return l.state != absent }) {
		select {
		case <-ls.ended:
		default:
			close(ls.ended)
		}
	}
}

// end closes the line's connection. The caller holds mu and the line.
func (l *line) end() {
	l.forgetAll()
	clear(l.known)
	l.pressure = 0
	l.state = absent
	lease := l.lease
	if lease == nil {
		return
	}
	l.lease, l.session = nil, nil
	go func() { // the pool's Close waits for it
		ctx, cancel := context.WithTimeout(context.Background(), session.EndLimit)
		defer cancel()
		_ = lease.Conn().Close(ctx) // whatever it says, the connection is closed
		lease.Release()
	}()
}

// lookForIdle ends lines that have been idle for as long as the pool's config allows, and looks again later.
func (ls *Pool) lookForIdle() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.later = nil
	left := false
	for _, l := range ls.all {
		if l.state == idle && time.Since(l.freed) > ls.idleLimit {
			l.end()
		}
		left = left || l.state != absent
	}
	if left {
		ls.lookLater()
	}
	ls.endIfEmpty()
}

// lookLater has idle lines looked for. The caller holds mu.
func (ls *Pool) lookLater() {
	if ls.later == nil && ls.closed == nil {
		ls.later = time.AfterFunc(ls.period, ls.lookForIdle)
	}
}
