package conns

import (
	"context"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// cancelBy cancels the statement of a session through an idle connection. It returns false if there is none that is known to
// work.
func (p *Pool) cancelBy(ctx context.Context, other *session.Session) bool {
	l := p.takeIdle()
	if l == nil {
		return false
	}
	done := l.session.CancelOther(ctx, other)
	l.free()
	return done
}

// takeIdle takes an idle lane whose connection was used a moment ago, and so works. It prefers the last one, which reads use the
// least. It returns nil if there is none.
func (p *Pool) takeIdle() *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shares || p.down != nil || p.closed != nil {
		return nil
	}
	for i := len(p.all) - 1; i >= 0; i-- {
		if l := p.all[i]; l.state == idle && time.Since(l.freed) < pingAfter {
			l.state, l.slow = busy, true
			l.progress.Add(1)
			return l
		}
	}
	return nil
}
