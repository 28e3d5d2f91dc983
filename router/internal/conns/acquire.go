package conns

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/buffered"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/router/operation"
)

// Release gives back the lane that a request was given.
func (r *Request) Release() {
	s := r.lane.session
	s.Clean()
	if after := r.lane.afterRelease; after != nil && !s.Conn.IsClosed() && !after(s.Conn) {
		_ = s.Conn.Close(context.Background()) // an error leaves it closed, too
	}
	r.lane.free(r)
}

// releaseUnless closes the connection and gives back the lane unless a call has returned: a panic of the caller's own code, such
// as a tracer or a batch that is nil, leaves the connection in any state.
func (r *Request) releaseUnless(returned *bool) {
	if *returned {
		return
	}
	_ = r.lane.session.Conn.Close(context.Background()) // an error leaves it closed, too
	r.Release()
}

// Begin begins a transaction on the lane that the request was given, or gives the lane back. With reading nothing may be written in it.
func (r *Request) Begin(opts pgx.TxOptions, reading bool) (pgx.Tx, error) {
	returned := false
	defer r.releaseUnless(&returned)
	attempt := 1
	if r.op != nil {
		attempt = r.op.Attempt
	}
	tx, err := r.lane.session.BeginTx(r.ctx, &r.shard.Shard, r, attempt, opts, reading)
	returned = true
	if err != nil {
		r.Release()
	}
	return tx, err
}

// SendBatch sends a batch on the lane that the request was given, or gives the lane back. Its error is about the shard.
func (r *Request) SendBatch(b *pgx.Batch) (pgx.BatchResults, error) {
	returned := false
	defer r.releaseUnless(&returned)
	results, err := r.lane.session.SendBatch(r.ctx, &r.shard.Shard, r, b)
	returned = true
	if err != nil {
		r.Release()
	}
	return results, err
}

// Session returns the session of the lane that the request was given.
func (r *Request) Session() *session.Session { return r.lane.session }

// acquireAny returns a request with a lane of the host. The error is a [shards.HostError].
func (p *Pool) acquireAny(ctx context.Context, shard *Shard) (*Request, error) {
	r := &Request{ctx: ctx, shard: shard, lease: true}
	return r, p.await(r)
}

// forLane returns a request that wants a lane for an operation.
func (p *Pool) forLane(ctx context.Context, shard *Shard, kind operation.Kind, summary string) *Request {
	ctx, op := shard.Operation(ctx, kind, summary)
	if op != nil && kind == operation.Tx {
		op.Attempt = tracers.AttemptOf(ctx)
	}
	return &Request{ctx: ctx, shard: shard, lease: true, op: op}
}

// submit waits until a request has either the answer to its statement, or a lane on which its caller sends it. The error
// is a [shards.HostError] if there was no lane, else a [shards.ShardError].
func (r *Request) submit() error {
	if err := session.Refused(r.text); err != nil {
		return r.shard.Failed(err)
	}
	err := r.shard.pool.await(r)
	if r.lane != nil && r.text.Leaves {
		r.lane.session.Left = true
	}
	return err
}

// forStatement returns the request of a single statement, or with whole of what may be several.
func (p *Pool) forStatement(ctx context.Context, shard *Shard, sql string, args []any, whole bool) *Request {
	t := p.Texts.Of(sql)
	kind := operation.Write
	reads := t.OnlyReads()
	if reads {
		kind = operation.Read
	}
	ctx, op := shard.Operation(ctx, kind, t.Summary)
	if p.noGroups { // what hides behind a view or an operator may write, and swallow the error of a server that holds it to reading
		reads = shard.Reads
	}
	r := &Request{ctx: ctx, shard: shard, text: t, sql: sql, args: args, reads: reads, op: op}
	r.lease = whole || !reads || !t.Repeats() || p.Texts.Slow(t) || t.Alone() || p.noGroups || !p.shares || !plainArgs(args)
	return r
}

// plainArgs reports whether a request's arguments are nothing but arguments, or [pgx.NamedArgs] alone. Options may stand behind these.
func plainArgs(args []any) bool {
	if len(args) == 0 {
		return true
	}
	switch args[0].(type) {
	case pgx.NamedArgs, pgx.StrictNamedArgs:
		return len(args) == 1
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryRewriter:
		return false
	}
	return true
}

// await waits until a request has a lane that works, or its answer, or its context ends.
func (p *Pool) await(r *Request) error {
	for {
		if err := p.awaitLane(r); err != nil || r.lane == nil {
			return err
		}
		ok, err := r.lane.ready(r.ctx)
		switch {
		case err != nil:
			r.giveBack()
			if r.resent && r.ctx.Err() != nil { // see interrupted
				return r.shard.Failed(err)
			}
			return p.Failed(err)
		case !ok: // the request goes to another lane
			r.giveBack()
		case r.server != "" && r.server != r.lane.session.Server:
			r.giveBack()
			return p.Failed(ErrOtherServer)
		default:
			r.op.Sent(1)
			return nil
		}
	}
}

// giveBack gives back the lane that a request was given and has not used, so that it can wait for another.
func (r *Request) giveBack() {
	l := r.lane
	l.free(r)
	l.mu.Lock()
	defer l.mu.Unlock() // a lane that connects for the request may look at it
	r.lane, r.woken, r.state = nil, nil, requestNew
}

// awaitLane waits until a request has a lane, or its answer, or its context ends.
func (p *Pool) awaitLane(r *Request) error {
	if r.ctx.Err() != nil {
		return p.interrupted(r)
	}
	if err := p.admit(r.ctx, r.shard); err != nil {
		return p.Failed(err)
	}
	l, err := p.admitRequest(r)
	switch {
	case err != nil:
		return p.Failed(err)
	case l != nil:
		r.lane = l
		return nil
	}
	return p.awaitWoken(r)
}

// awaitWoken waits until a request is woken, with a lane or with its answer.
func (p *Pool) awaitWoken(r *Request) error {
	select {
	case <-r.woken:
	case <-r.ctx.Done():
		switch sent, left := p.leave(r); {
		case left && sent:
			r.left = true
			return r.shard.Failed(r.ctx.Err())
		case left:
			return p.interrupted(r)
		}
		<-r.woken
	}
	return r.err
}

// interrupted returns the error of a request whose context ended while it waited: a [shards.HostError] only if nothing was sent.
func (p *Pool) interrupted(r *Request) error {
	if r.resent {
		return r.shard.Failed(r.ctx.Err())
	}
	return p.Failed(r.ctx.Err())
}

// Unsent returns the error with which a caller gives up a request, and reports it to tracers that do not know of the request yet.
// No lane works for the request any more.
func (r *Request) Unsent(err error) error {
	if r.op != nil && !r.left && !Retired(err) { // else it goes on elsewhere
		r.op.Fail(err)
	}
	return err
}

// Ping asks the host for a sign of life.
func (p *Pool) Ping(ctx context.Context) error {
	r, err := p.acquireAny(ctx, nil)
	if err != nil {
		return err
	}
	defer r.Release()
	if err := r.lane.session.Conn.Ping(ctx); err != nil {
		return p.Failed(err)
	}
	return nil
}

// admit returns when a request may go to the host, or its shard has gone elsewhere.
func (p *Pool) admit(ctx context.Context, shard *Shard) error {
	if p.primary.Passing() {
		return nil
	}
	return p.primary.Admit(ctx, shard.left)
}

// left returns errMoved once the shard has gone to another host. The shard is nil for a request to no shard.
func (s *Shard) left() error {
	if s == nil || !s.gone.Load() {
		return nil
	}
	return errMoved
}

// Exec runs SQL for a request that was given its answer or a lane to ask for it.
func (r *Request) Exec(sql string, args []any) (pgconn.CommandTag, error) {
	if r.answer != nil {
		return r.answer.Tag, nil
	}
	defer r.Release()
	s, started := r.lane.session, time.Now()
	tag, err := s.Exec(r.ctx, r.scope(), sql, args)
	r.shard.pool.Texts.Observe(r.text, time.Since(started), true)
	if err == nil {
		err = session.TxLeft(s.Conn)
	}
	return tag, r.shard.Failed(err)
}

// Query returns the rows of a statement, whose request was given its answer or a lane to ask for it. Those of a read come into memory
// first, as far as there is room: it may turn out to write in any row, and is then run again.
func (r *Request) Query(sql string, args []any) (pgx.Rows, error) {
	if r.answer != nil {
		return r.answer.Rows(&r.shard.Host.Types), nil
	}
	started := time.Now()
	rows, err := r.query(sql, args)
	r.shard.pool.Texts.Observe(r.text, time.Since(started), true)
	if err != nil {
		r.Release()
		return session.FailedRows(err), err
	}
	if !r.reads || r.shard.Reads {
		return rows, nil
	}
	if rows, err = buffered.ReadAhead(&r.shard.Host.Types, rows, r.text); err != nil {
		return session.FailedRows(err), err
	}
	return rows, nil
}

// query sends a statement on the lane that the request was given.
func (r *Request) query(sql string, args []any) (pgx.Rows, error) {
	returned := false
	defer r.releaseUnless(&returned)
	rows, err := r.lane.session.Query(r.ctx, &r.shard.Shard, r, r.scope(), sql, args) //nolint:sqlclosecheck // they are returned
	returned = true
	return rows, err
}
