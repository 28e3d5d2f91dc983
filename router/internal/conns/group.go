package conns

import (
	"context"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// cancelAgain is the pause between two cancel requests.
const cancelAgain = 20 * time.Millisecond

// begin notes down which session the requests go.
func (g *group) begin(s *session.Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.session = s
	g.begun.Store(time.Now().UnixNano())
}

// giveUp cancels the group on the server, as pgx does when a context ends. The server may have all the statements already
// and goes from one to the next, so that the cancel request is repeated until it is through with them.
func (g *group) giveUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || g.session == nil || g.gaveUp != nil {
		return
	}
	g.gaveUp, g.quiet = make(chan struct{}), make(chan error, 1)
	g.lane.stopping.Go(func() {
		limit := session.EndLimit
		if g.late.Load() {
			limit = session.LeaveLimit // callers wait for its end
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		for {
			err := g.session.Cancel(ctx) // whether it has worked shows in the answers
			select {
			case <-g.gaveUp:
				g.quiet <- err
				return
			case <-ctx.Done():
				_ = g.session.Conn.PgConn().Conn().SetDeadline(time.Unix(1, 0)) // the server does not answer at all
				return
			case <-time.After(cancelAgain):
			}
		}
	})
}

// end says that the lane is done with the requests. It returns false if the connection must not be used again, because a cancel
// request may arrive later.
func (g *group) end() bool {
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	if g.gaveUp == nil {
		return true
	}
	close(g.gaveUp)
	if g.lane.Pooled.Load() {
		return false
	}
	select {
	case err := <-g.quiet:
		return err == nil
	case <-time.After(session.LeaveLimit):
		return false
	}
}
