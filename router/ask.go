package router

import (
	"context"

	"github.com/jackc/pgx/v5"
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

// ask returns a call that was given either the answer to a single statement, or a line on which the caller is to ask for
// it. whole says that the SQL may be several statements. The error is a [shards.HostError] if there was no line, else a
// [shards.ShardError].
func (h *host) ask(ctx context.Context, home *home, sql string, args []any, whole bool) (*call, error) {
	c := h.callFor(ctx, home, sql, args, whole)
	if err := c.text.refused(); err != nil {
		return nil, home.failed(err)
	}
	err := h.enter(c)
	if c.line != nil && c.text.leaves {
		c.line.session.left = true
	}
	return c, err
}

// callFor returns the call of a single statement, or of what may be several.
func (h *host) callFor(ctx context.Context, home *home, sql string, args []any, whole bool) *call {
	t := h.texts.of(sql)
	c := &call{ctx: ctx, home: home, text: t, sql: sql, args: args, slow: h.texts.slow(t)}
	together := t.reads && h.pipeline == PipelineReads || h.pipeline == PipelineAll
	c.lease = whole || c.slow || t.leaves || t.calls || !together || !h.shares || !plainArgs(args)
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
	if err := c.ctx.Err(); err != nil {
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
	return nil
}

// await waits until a call is woken, with a line or with its answer.
func (h *host) await(c *call) error {
	select {
	case <-c.woken:
	case <-c.ctx.Done():
		switch sent, left := h.lines.leave(c); {
		case left && sent:
			return c.home.failed(c.ctx.Err())
		case left:
			return h.failed(c.ctx.Err())
		}
		<-c.woken
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.err
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
