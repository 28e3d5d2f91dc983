package conns

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// cancelAgain is the pause between two cancel requests.
const cancelAgain = 20 * time.Millisecond

// begin notes down which connection the requests go.
func (g *group) begin(conn *pgconn.PgConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn = conn
	g.begun.Store(time.Now().UnixNano())
}

// giveUp cancels the group on the server, as pgx does when a context ends. The server may have all the statements already
// and goes from one to the next, so that the cancel request is repeated until it is through with them. The connection is not
// used again: a cancel request may arrive late.
func (g *group) giveUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || g.conn == nil || g.gaveUp != nil {
		return
	}
	g.gaveUp = make(chan struct{})
	g.lane.stopping.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), session.EndLimit)
		defer cancel()
		for {
			_ = g.conn.CancelRequest(ctx) // whether it has worked shows in the answers
			select {
			case <-g.gaveUp:
				return
			case <-ctx.Done():
				_ = g.conn.Conn().SetDeadline(time.Unix(1, 0)) // the server does not answer at all
				return
			case <-time.After(cancelAgain):
			}
		}
	})
}

// end says that the lane is done with the requests. It returns false if the connection must not be used again.
func (g *group) end() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if g.gaveUp == nil {
		return true
	}
	close(g.gaveUp)
	return false
}
