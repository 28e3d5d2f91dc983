package conns

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/together"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// QueryTogether is one try to query with a statement that its caller sends with others: it waits in the queue of a line,
// also if that has nothing to do. It returns false if the statement is to be sent by itself.
func (t *Attempts) QueryTogether(ctx context.Context, at *Shard, sql string, args []any, hint *together.Hint) (pgx.Rows, bool, error) {
	defer hint.Arrive()
	ls := at.conns
	c := ls.callFor(ctx, at, sql, args, false)
	if c.lease || session.Refused(c.text) != nil || !ls.primary.Passing() {
		return nil, false, nil
	}
	turns := ls.primary.Turns()
	c.hint, c.woken = hint, make(chan struct{})
	if ls.begin(c) != nil {
		return nil, false, nil // by itself it is tried again if that may help
	}
	hint.Arrive()
	t.turns = turns
	err := ls.await(c)
	if err == nil {
		return c.answer.Rows(&at.Shard), true, nil
	}
	again, err := c.Retry(ctx, t, err)
	return session.FailedRows(err), !again, err
}

// begin finds a line for a call that waits for others.
func (ls *Pool) begin(c *Request) error {
	if err := c.ctx.Err(); err != nil {
		return ls.Failed(err)
	}
	l, err := ls.enter(c)
	if err != nil {
		return ls.Failed(err)
	}
	if l != nil {
		ls.mu.Lock()
		l.grant(c)
		ls.mu.Unlock()
	}
	return nil
}
