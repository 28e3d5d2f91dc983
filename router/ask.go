package router

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/router/operation"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// Release gives back the line that a call was given.
func (c *call) Release() {
	s := c.line.session
	s.Clean()
	if after := c.line.host.afterRelease; after != nil && !s.Conn.IsClosed() && !after(s.Conn) {
		_ = s.Conn.Close(context.Background()) // whatever it says, the connection is closed
	}
	c.line.free(c)
}

// begin begins a transaction on the line that the call was given, or gives the line back. With reading nothing may be written in it.
func (c *call) begin(opts pgx.TxOptions, reading bool) (pgx.Tx, error) {
	attempt := 1
	if c.op != nil {
		attempt = c.op.Attempt
	}
	tx, err := c.line.session.BeginTx(c.ctx, &c.home.Shard, c, attempt, opts, reading)
	if err != nil {
		c.Release()
	}
	return tx, err
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
	ctx, op := home.Operation(ctx, kind, summary)
	if op != nil && kind == operation.Tx {
		op.Attempt = tracers.AttemptOf(ctx)
	}
	return &call{ctx: ctx, home: home, lease: true, op: op}
}

// ask has a call be given either the answer to its statement, or a line on which the caller is to ask for it. The error
// is a [shards.HostError] if there was no line, else a [shards.ShardError].
func (c *call) ask() error {
	if err := session.Refused(c.text); err != nil {
		return c.home.Failed(err)
	}
	err := c.home.host.enter(c)
	if c.line != nil && c.text.Leaves {
		c.line.session.Left = true
	}
	return err
}

// callFor returns the call of a single statement, or with whole of what may be several.
func (h *host) callFor(ctx context.Context, home *home, sql string, args []any, whole bool) *call {
	t := h.Texts.Of(sql)
	kind := operation.Write
	reads := t.OnlyReads()
	if reads {
		kind = operation.Read
	}
	ctx, op := home.Operation(ctx, kind, t.Summary)
	c := &call{ctx: ctx, home: home, text: t, sql: sql, args: args, reads: reads, slow: h.Texts.Slow(t), op: op}
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
		return h.Failed(err)
	}
	l, err := h.lines.enter(c)
	switch {
	case err != nil:
		return h.Failed(err)
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
		return h.Failed(err)
	}
	if c.server != "" && c.server != c.line.session.Server {
		c.line.free(c)
		c.line = nil
		return h.Failed(errOtherServer)
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
			return c.home.Failed(c.ctx.Err())
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
		return c.home.Failed(c.ctx.Err())
	}
	return h.Failed(c.ctx.Err())
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
	defer c.Release()
	if err := c.line.session.Conn.Ping(ctx); err != nil {
		return h.Failed(err)
	}
	return nil
}
