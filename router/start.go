package router

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/together"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// queryTogether is one try to query with a statement that its caller sends with others: it waits in the queue of a line,
// also if that has nothing to do. It returns false if the statement is to be sent by itself, see [Shard.queryAgain].
func (s Shard) queryTogether(ctx context.Context, t *tries, sql string, args []any, hint *together.Hint) (pgx.Rows, bool, error) {
	defer hint.Arrive()
	home := s.home.now()
	c := home.host.callFor(ctx, home, sql, args, false)
	if c.lease || session.Refused(c.text) != nil || !home.host.watch.Passing() {
		return nil, false, nil
	}
	turns := home.host.watch.Turns()
	c.hint, c.woken = hint, make(chan struct{})
	if home.host.begin(c) != nil {
		return nil, false, nil // by itself it is tried again if that may help
	}
	hint.Arrive()
	t.turns = turns
	err := home.host.await(c)
	if err == nil {
		return c.answer.Rows(&c.home.Shard), true, nil
	}
	again, err := c.again(ctx, t, err)
	return session.FailedRows(err), !again, err
}

// begin finds a line for a call that waits for others.
func (h *host) begin(c *call) error {
	if err := c.ctx.Err(); err != nil {
		return h.Failed(err)
	}
	l, err := h.lines.enter(c)
	if err != nil {
		return h.Failed(err)
	}
	if l != nil {
		h.lines.mu.Lock()
		l.grant(c)
		h.lines.mu.Unlock()
	}
	return nil
}

// grant gives a line to a call: to its caller, or if that waits for others, to a goroutine. The caller holds mu.
func (l *line) grant(c *call) {
	if c.hint == nil {
		c.wake(l, nil)
		return
	}
	c.state, c.queue = callQueued, l
	l.queue = append([]*call{c}, l.queue...)
	go func() {
		c.hint.AwaitAll()
		l.mu.Lock()
		work := l.next()
		l.mu.Unlock()
		l.drive(work)
	}()
}
