package conns

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// start tells tracers that a call is sent. Its arguments are the caller's again if that has left.
func (c *sentCall) start(conn *pgx.Conn, together int) {
	if c.op == nil {
		return
	}
	c.arguments.Lock()
	defer c.arguments.Unlock()
	if c.late.Load() {
		return // the operation is its caller's
	}
	args := c.args
	if c.settled.Load() {
		args = nil
	}
	c.op.Start(conn, c.sql, args, together)
}

// end hands out the answer to a call, and tells tracers, unless its caller does: who asks again, or may do so.
func (c *sentCall) end(a *session.Answer, err error) {
	mine := c.claim()
	switch {
	case c.op == nil, mine && (errors.Is(err, ErrApart) || err != nil && !c.op.Told()), !mine && c.late.Load():
	default:
		var tag pgconn.CommandTag
		if a != nil {
			tag = a.Tag
		}
		if !mine && (err == nil || errors.Is(err, ErrApart)) {
			err = c.ctx.Err() // its caller has left
		}
		c.op.Finish(tag, err)
	}
	if mine {
		c.publish(a, c.shard.Failed(err))
	}
}

// settleBad does something with every call, settles those where it goes wrong, and returns the others. It reads the
// callers' arguments.
func settleBad(calls []sentCall, do func(*sentCall) error) []sentCall {
	try := func(c *sentCall) error {
		c.arguments.Lock()
		defer c.arguments.Unlock()
		if c.settled.Load() {
			return context.Canceled // nobody waits for it
		}
		return do(c)
	}
	good := calls[:0]
	for i := range calls {
		c := &calls[i]
		if err := try(c); err != nil {
			c.end(nil, err)
			continue
		}
		good = append(good, *c)
	}
	return good
}
