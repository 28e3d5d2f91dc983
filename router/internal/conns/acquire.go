package conns

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/router/operation"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// Release gives back the line that a call was given.
func (c *Request) Release() {
	s := c.line.session
	s.Clean()
	if after := c.line.afterRelease; after != nil && !s.Conn.IsClosed() && !after(s.Conn) {
		_ = s.Conn.Close(context.Background()) // whatever it says, the connection is closed
	}
	c.line.free(c)
}

// Begin begins a transaction on the line that the call was given, or gives the line back. With reading nothing may be written in it.
func (c *Request) Begin(opts pgx.TxOptions, reading bool) (pgx.Tx, error) {
	attempt := 1
	if c.op != nil {
		attempt = c.op.Attempt
	}
	tx, err := c.line.session.BeginTx(c.ctx, &c.shard.Shard, c, attempt, opts, reading)
	if err != nil {
		c.Release()
	}
	return tx, err
}

// SendBatch sends a batch on the line that the call was given, or gives the line back. Its error is about the shard.
func (c *Request) SendBatch(b *pgx.Batch) (pgx.BatchResults, error) {
	results, err := c.line.session.SendBatch(c.ctx, &c.shard.Shard, c, b)
	if err != nil {
		c.Release()
	}
	return results, err
}

// Session returns the session of the line that the call was given.
func (c *Request) Session() *session.Session { return c.line.session }

// acquire returns a call that was given a line of the host. Its error is a [shards.HostError].
func (ls *Pool) acquire(ctx context.Context, shard *Shard) (*Request, error) {
	c := &Request{ctx: ctx, shard: shard, lease: true}
	return c, ls.obtain(c)
}

// leaseFor returns a call that wants a line for an operation.
func (ls *Pool) leaseFor(ctx context.Context, shard *Shard, kind operation.Kind, summary string) *Request {
	ctx, op := shard.Operation(ctx, kind, summary)
	if op != nil && kind == operation.Tx {
		op.Attempt = tracers.AttemptOf(ctx)
	}
	return &Request{ctx: ctx, shard: shard, lease: true, op: op}
}

// ask has a call be given either the answer to its statement, or a line on which the caller is to ask for it. The error
// is a [shards.HostError] if there was no line, else a [shards.ShardError].
func (c *Request) ask() error {
	if err := session.Refused(c.text); err != nil {
		return c.shard.Failed(err)
	}
	err := c.shard.conns.obtain(c)
	if c.line != nil && c.text.Leaves {
		c.line.session.Left = true
	}
	return err
}

// callFor returns the call of a single statement, or with whole of what may be several.
func (ls *Pool) callFor(ctx context.Context, shard *Shard, sql string, args []any, whole bool) *Request {
	t := ls.Texts.Of(sql)
	kind := operation.Write
	reads := t.OnlyReads()
	if reads {
		kind = operation.Read
	}
	ctx, op := shard.Operation(ctx, kind, t.Summary)
	c := &Request{ctx: ctx, shard: shard, text: t, sql: sql, args: args, reads: reads, slow: ls.Texts.Slow(t), op: op}
	c.lease = whole || c.slow || !reads || t.Alone() || ls.alone || !ls.shares || !plainArgs(args)
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

// obtain has a call wait for its line or its answer, as long as its context lasts.
func (ls *Pool) obtain(c *Request) error {
	if c.ctx.Err() != nil {
		return ls.gaveUp(c)
	}
	if err := ls.admit(c.ctx, c.shard); err != nil {
		return ls.Failed(err)
	}
	l, err := ls.enter(c)
	switch {
	case err != nil:
		return ls.Failed(err)
	case l != nil:
		c.line = l
	default:
		if err := ls.await(c); err != nil || c.line == nil {
			return err
		}
	}
	if err := c.line.ready(c.ctx); err != nil {
		c.line.free(c)
		c.line = nil
		return ls.Failed(err)
	}
	if c.server != "" && c.server != c.line.session.Server {
		c.line.free(c)
		c.line = nil
		return ls.Failed(ErrOtherServer)
	}
	c.op.Sent(1)
	return nil
}

// await waits until a call is woken, with a line or with its answer.
func (ls *Pool) await(c *Request) error {
	select {
	case <-c.woken:
	case <-c.ctx.Done():
		switch sent, left := ls.leave(c); {
		case left && sent:
			c.left = true
			return c.shard.Failed(c.ctx.Err())
		case left:
			return ls.gaveUp(c)
		}
		<-c.woken
	}
	return c.err
}

// gaveUp returns the error of a call whose context ended while it waited: a [shards.HostError] only if nothing was sent.
func (ls *Pool) gaveUp(c *Request) error {
	if c.resent {
		return c.shard.Failed(c.ctx.Err())
	}
	return ls.Failed(c.ctx.Err())
}

// Unsent tells tracers of the error with which a caller gives a call up, if they have not heard of the call, and returns
// it. No line works for the call any more.
func (c *Request) Unsent(err error) error {
	if c.op != nil && !c.left && !Retired(err) { // else it goes on elsewhere
		c.op.Fail(err)
	}
	return err
}

// Ping asks the host for a sign of life.
func (ls *Pool) Ping(ctx context.Context) error {
	c, err := ls.acquire(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Release()
	if err := c.line.session.Conn.Ping(ctx); err != nil {
		return ls.Failed(err)
	}
	return nil
}

// admit returns when a call may go to the host, or its shard has gone elsewhere.
func (ls *Pool) admit(ctx context.Context, shard *Shard) error {
	if ls.primary.Passing() {
		return nil
	}
	return ls.primary.Admit(ctx, shard.left)
}

// left returns errMoved once the shard has gone to another host. The shard is nil for a call to no shard.
func (s *Shard) left() error {
	if s == nil || !s.gone.Load() {
		return nil
	}
	return errMoved
}

// Exec runs SQL for a call that was given its answer or a line to ask for it.
func (c *Request) Exec(sql string, args []any) (pgconn.CommandTag, error) {
	if c.answer != nil {
		return c.answer.Tag, nil
	}
	defer c.Release()
	s, started := c.line.session, time.Now()
	tag, err := s.Exec(c.ctx, c.scope(), sql, args)
	c.shard.conns.Texts.Observe(c.text, time.Since(started), true)
	if err == nil && s.Conn.PgConn().TxStatus() != 'I' {
		err = errTxLeft
	}
	return tag, c.shard.Failed(err)
}

// Query returns the rows of a statement, whose call was given its answer or a line to ask for it.
func (c *Request) Query(sql string, args []any) (pgx.Rows, error) {
	if c.answer != nil {
		return c.answer.Rows(&c.shard.Shard), nil
	}
	started := time.Now()
	rows, err := c.line.session.Query(c.ctx, &c.shard.Shard, c, c.scope(), sql, args)
	c.shard.conns.Texts.Observe(c.text, time.Since(started), true)
	if err != nil {
		c.Release()
		return session.FailedRows(err), err
	}
	return rows, nil
}
