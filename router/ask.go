package router

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/router/operation"
)

// release gives back the line that a call was given.
func (c *call) release() {
	s := c.line.session
	s.clean()
	if after := s.host.afterRelease; after != nil && !s.conn.IsClosed() && !after(s.conn) {
		_ = s.conn.Close(context.Background()) // whatever it says, the connection is closed
	}
	c.line.free(c)
}

// acquire returns a call that was given a line of the host. Its error is a [shards.HostError].
func (h *host) acquire(ctx context.Context, home *home) (*call, error) {
	c := &call{ctx: ctx, home: home, lease: true}
	return c, h.enter(c)
}

// acquireFor returns a call that was given a line for an operation, whose context it has.
func (h *host) acquireFor(ctx context.Context, home *home, kind operation.Kind, summary string) (*call, error) {
	c := h.leaseFor(ctx, home, kind, summary)
	return c, h.enter(c)
}

// leaseFor returns a call that wants a line for an operation.
func (h *host) leaseFor(ctx context.Context, home *home, kind operation.Kind, summary string) *call {
	ctx, op := home.operation(ctx, kind, summary)
	if op != nil && kind == operation.Tx {
		op.Attempt = tracers.AttemptOf(ctx)
	}
	return &call{ctx: ctx, home: home, lease: true, op: op}
}

// ask has a call be given either the answer to its statement, or a line on which the caller is to ask for it. The error
// is a [shards.HostError] if there was no line, else a [shards.ShardError].
func (c *call) ask() error {
	if err := refused(c.text); err != nil {
		return c.home.failed(err)
	}
	err := c.home.host.enter(c)
	if c.line != nil && c.text.Leaves {
		c.line.session.left = true
	}
	return err
}

// callFor returns the call of a single statement, or with whole of what may be several.
func (h *host) callFor(ctx context.Context, home *home, sql string, args []any, whole bool) *call {
	t := h.texts.Of(sql)
	kind := operation.Write
	reads := t.OnlyReads()
	if reads {
		kind = operation.Read
	}
	ctx, op := home.operation(ctx, kind, t.Summary)
	c := &call{ctx: ctx, home: home, text: t, sql: sql, args: args, reads: reads, slow: h.texts.Slow(t), op: op}
	c.lease = whole || c.slow || !reads || t.Alone() || h.alone || !h.shares || !plainArgs(args)
	return c
}

// plainArgs tells whether a call's arguments are nothing but arguments, or [pgx.NamedArgs].
func plainArgs(args []any) bool {
	if len(args) == 0 {
		return true
	}
	switch args[0].(type) {
	case pgx.NamedArgs, pgx.StrictNamedArgs:
		return true
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryRewriter:
		return false
	}
	return true
}

// enter has a call wait for its line or its answer, as long as its context lasts.
func (h *host) enter(c *call) error {
	if c.ctx.Err() != nil {
		return h.gaveUp(c)
	}
	if err := h.admit(c.ctx, c.home); err != nil {
		return h.failed(err)
	}
	l, err := h.lines.enter(c)
	switch {
	case err != nil:
		return h.failed(err)
	case l != nil:
		c.line = l
	default:
		if err := h.await(c); err != nil || c.line == nil {
			return err
		}
	}
	if err := c.line.ready(c.ctx); err != nil {
		c.line.free(c)
		c.line = nil
		return h.failed(err)
	}
	if c.server != "" && c.server != c.line.session.server {
		c.line.free(c)
		c.line = nil
		return h.failed(errOtherServer)
	}
	c.op.Sent(1)
	return nil
}

// await waits until a call is woken, with a line or with its answer.
func (h *host) await(c *call) error {
	select {
	case <-c.woken:
	case <-c.ctx.Done():
		switch sent, left := h.lines.leave(c); {
		case left && sent:
			c.left = true
			return c.home.failed(c.ctx.Err())
		case left:
			return h.gaveUp(c)
		}
		<-c.woken
	}
	return c.err
}

// gaveUp returns the error of a call whose context ended while it waited: a [shards.HostError] only if nothing was sent.
func (h *host) gaveUp(c *call) error {
	if c.resent {
		return c.home.failed(c.ctx.Err())
	}
	return h.failed(c.ctx.Err())
}

// unsent tells tracers of the error with which a caller gives a call up, if they have not heard of the call, and returns
// it. No line works for the call any more.
func (c *call) unsent(err error) error {
	if c.op != nil && !c.left && !retired(err) { // else it goes on elsewhere
		c.op.Fail(err)
	}
	return err
}

// ping asks the host for a sign of life.
func (h *host) ping(ctx context.Context) error {
	c, err := h.acquire(ctx, nil)
	if err != nil {
		return err
	}
	defer c.release()
	if err := c.line.session.conn.Ping(ctx); err != nil {
		return h.failed(err)
	}
	return nil
}

// operation returns the context of an operation on a shard, and the operation; without tracers ctx and nil.
func (h *home) operation(ctx context.Context, kind operation.Kind, summary string) (context.Context, *tracers.Operation) {
	if !h.host.trace.Any {
		return ctx, nil
	}
	return h.host.trace.Begin(ctx, operation.Info{
		Shard: h.number, Host: h.host.Name, Place: h.host.place.Load(), Schema: h.schema, Kind: kind, Summary: summary,
	})
}
