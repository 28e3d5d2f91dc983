package conns

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// Close has all lanes end when they are free, and waits for that until ctx ends: then their connections are closed, free or
// not, and it returns within EndLimit. Requests that wait for a lane get the error, as do those that come later.
func (p *Pool) Close(ctx context.Context, why error) {
	p.primary.Retire(why)
	p.mu.Lock()
	if p.closed == nil {
		p.closed = why
		p.shut()
		if p.idleTimer != nil {
			p.idleTimer.Stop()
		}
		for _, r := range p.waiting {
			r.wake(nil, p.Failed(why))
		}
		p.waiting = nil
		for _, l := range p.all {
			if l.state == idle {
				l.end()
			}
		}
		p.endIfEmpty()
	}
	p.mu.Unlock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		<-p.ended
		p.stopping.Wait()
		p.pool.Close()
	}()
	select {
	case <-over:
	case <-ctx.Done():
		p.primary.Cut(why)
		select {
		case <-over:
		case <-time.After(session.EndLimit): // a caller never gives its lane back
		}
	}
	p.primary.Close()
	p.Log.Info("host closed", slog.String("host", p.Name))
}

func (p *Pool) endIfEmpty() {
	if p.closed != nil && !slices.ContainsFunc(p.all, func(l *lane) bool { return l.state != absent }) {
		select {
		case <-p.ended:
		default:
			close(p.ended)
		}
	}
}

// end closes the lane's connection. The caller holds mu and the lane.
func (l *lane) end() {
	clear(l.known)
	l.state = absent
	lease := l.lease
	if lease == nil {
		return
	}
	l.lease, l.session = nil, nil
	go func() { // the pool's Close waits for it
		ctx, cancel := context.WithTimeout(context.Background(), session.EndLimit)
		defer cancel()
		_ = lease.Conn().Close(ctx) // an error leaves it closed, too
		lease.Release()
	}()
}

// closeIdle ends lanes that have been idle for as long as the pool's config allows, and looks again later.
func (p *Pool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idleTimer = nil
	left := false
	for _, l := range p.all {
		if l.state == idle && time.Since(l.freed) > p.idleLimit {
			l.end()
		}
		left = left || l.state != absent
	}
	if left {
		p.watchIdle()
	}
	p.endIfEmpty()
}

// watchIdle has idle lanes looked for. The caller holds mu.
func (p *Pool) watchIdle() {
	if p.idleTimer == nil && p.closed == nil {
		p.idleTimer = time.AfterFunc(p.period, p.closeIdle)
	}
}
