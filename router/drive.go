package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// answerPart is how much of an answer is read, in bytes, before its caller gets it: the rest follows in parts of this
// size as the caller takes them, and meanwhile the line is for nobody else.
const answerPart = 1 << 20

var errPanicked = errors.New("a method of an argument panicked")

// drive works for the calls that wait for a line, until it has no more to do.
func (l *line) drive(calls []*call) {
	for calls != nil {
		l.work(calls)
		runtime.Gosched() // those who have their answers may have a next question
		calls = l.finish(calls...)
	}
}

// work sends calls down the line together, each with a Sync of its own, so that each is a transaction by itself and fails
// alone, and hands their answers out as they come.
//
// Those whose prepared statement is out of date are sent a second time. Nothing happens twice by this, see
// [session.send].
func (l *line) work(calls []*call) {
	ctx := context.Background() // the callers' may end, each by itself; see group.giveUp
	if err := l.ready(ctx); err != nil {
		for _, c := range calls {
			c.fail(l.host.failed(err))
		}
		return
	}
	group := calls[0].group
	group.begin(l.session.conn.PgConn())
	defer func() {
		if !group.end() {
			_ = l.session.conn.Close(ctx) // whatever it says, the connection is closed
		}
	}()
	sent := l.sending[:0]
	for _, c := range calls {
		sent = append(sent, sentCall{call: c})
	}
	l.sending = sent
	defer clear(sent)
	again, unsent := l.round(ctx, sent, false)
	if unsent == nil && len(again) > 0 {
		_, unsent = l.round(ctx, again, true)
	}
	if unsent != nil {
		l.putBack(calls, unsent)
	}
}

// sentCall is a call with what is needed to send it.
type sentCall struct {
	*call
	st    statement
	kept  *keptStatement // nil if it is not prepared
	known bool           // the statement was prepared before
	path  bool           // it goes with its path
}

// round sends calls and reads their answers. It returns those that may succeed the second time, unless this is it. Its
// error says that nothing was sent, and that no call was settled.
func (l *line) round(ctx context.Context, calls []sentCall, last bool) (again []sentCall, unsent error) {
	s := l.session
	calls = s.settleBad(calls, s.parseCall)
	calls = s.describeCalls(ctx, calls)
	if len(calls) == 0 {
		return nil, nil
	}
	for i := range calls {
		s.follow(calls[i].home.path)
	}
	if err := s.stay(ctx); err != nil {
		return nil, err
	}
	pipeline := s.conn.PgConn().StartPipeline(ctx)
	calls = s.settleBad(calls, func(c *sentCall) error { return s.sendCall(pipeline, c) })
	lost := pipeline.Flush()
	if pgconn.SafeToRetry(lost) {
		return nil, lost
	}
	for i := range calls { // while the server is at work
		calls[i].start(s.conn, len(calls))
	}
	unanswered := uint64(0)
	for i := range calls {
		c := &calls[i]
		var a *answer
		err := lost
		if lost == nil {
			started := time.Now()
			a, err, lost = l.receive(pipeline, c)
			l.host.observe(c.text, time.Since(started), i == 0)
		}
		l.steps.Add(1)
		switch {
		case !last && s.outOfDate(c, err):
			again = append(again, *c)
			l.host.resent.Add(1)
			continue
		case lost != nil && sqlState(err) == "": // else the server has said why
			err = fmt.Errorf("%w: %w", ErrLost, lost)
			unanswered++
		}
		c.end(a, err)
	}
	if unanswered > 0 {
		l.host.lost.Add(unanswered)
		l.host.log.Warn("connection lost", slog.String("host", l.host.Name), slog.Uint64("unanswered", unanswered), slog.Any("error", lost))
	}
	_ = pipeline.Close() // what it says has been said to a call
	return again, nil
}

// start tells tracers that a call is sent. Its arguments are the caller's again if that has left.
func (c *sentCall) start(conn *pgx.Conn, together int) {
	if c.op == nil {
		return
	}
	c.arguments.Lock()
	defer c.arguments.Unlock()
	args := c.args
	if c.settled.Load() {
		args = nil
	}
	c.op.start(conn, c.sql, args, together)
}

// end hands out the answer to a call.
func (c *sentCall) end(a *answer, err error) {
	if err != nil && c.op != nil && !c.op.told {
		c.fail(c.home.failed(err))
		return
	}
	if c.op != nil {
		tag, failure := noTag, err
		if a != nil {
			tag = a.tag
		}
		if failure == nil && c.settled.Load() && a.more == nil {
			failure = c.ctx.Err() // its caller has left
		}
		c.op.finish(tag, failure)
	}
	c.settle(a, c.home.failed(err))
}

// settleBad does something with every call, settles those where it goes wrong, and returns the others. It reads the
// callers' arguments, and a panic of their methods is the caller's.
func (s *session) settleBad(calls []sentCall, do func(*sentCall) error) []sentCall {
	try := func(c *sentCall) (err error) {
		c.arguments.Lock()
		defer c.arguments.Unlock()
		if c.settled.Load() {
			return context.Canceled // nobody waits for it
		}
		defer func() {
			if cause := recover(); cause != nil {
				c.panicked, err = cause, errPanicked
			}
		}()
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

// sendCall encodes a call to the end of a pipeline.
func (s *session) sendCall(pipeline *pgconn.Pipeline, c *sentCall) error {
	formats, err := s.encodeCall(c)
	if err != nil {
		return err
	}
	if c.path = s.sets(c.home.scope()); c.path {
		s.sendPath(pipeline, c.home.scope())
	}
	if d := c.st.desc; d != nil && !s.pooled {
		pipeline.SendQueryStatement(d, s.encoder.ParamValues, s.encoder.ParamFormats, formats)
	} else {
		var oids []uint32
		if d != nil {
			oids = d.ParamOIDs
		}
		pipeline.SendQueryParams(c.st.sql, s.encoder.ParamValues, oids, s.encoder.ParamFormats, formats)
	}
	pipeline.SendPipelineSync()
	return nil
}

// receive reads what the server says to a call, up to its Sync. lost is an error that is the end of the connection.
func (l *line) receive(pipeline *pgconn.Pipeline, c *sentCall) (a *answer, err, lost error) {
	path := c.path
	for {
		result, failure := pipeline.GetResults()
		switch result := result.(type) {
		case nil:
			if failure == nil {
				failure = errNoAnswer
			}
		case *pgconn.PipelineSync:
			return a, err, nil
		case *pgconn.ResultReader:
			if path {
				path = false
				_, failure = result.Close()
			} else {
				a, failure = l.read(result, c)
			}
		}
		if failure != nil && err == nil {
			err = failure
		}
		if failure != nil && sqlState(failure) == "" {
			return a, err, failure
		}
	}
}

// encodeCall encodes a call's arguments, and returns the formats of its results, which are the same each time.
func (s *session) encodeCall(c *sentCall) ([]int16, error) {
	if c.kept == nil || c.kept.formats == nil {
		formats, err := s.encodeFor(&c.st)
		if c.kept != nil {
			c.kept.formats = formats
		}
		return formats, err
	}
	if want, got := len(c.st.desc.ParamOIDs), len(c.st.args); want != got {
		return nil, fmt.Errorf("expected %d arguments, got %d", want, got)
	}
	return c.kept.formats, s.encode(c.st.desc, c.st.args)
}

// fields returns the descriptions of the columns of a call's answer, for callers to keep: the connection uses its own
// again.
func (c *sentCall) fields(result *pgconn.ResultReader) []pgconn.FieldDescription {
	if c.kept == nil {
		return slices.Clone(result.FieldDescriptions())
	}
	if c.kept.fields == nil {
		c.kept.fields = slices.Clone(result.FieldDescriptions())
	}
	return c.kept.fields
}

// outOfDate forgets a call's prepared statement if that may be what its error comes from.
func (s *session) outOfDate(c *sentCall, err error) bool {
	switch {
	case err == nil:
		return false
	case gone(err):
		s.statements.dropAll()
		s.setPath = nil
		return true
	case c.known && maybeStale(err):
		s.statements.drop(statementKey{c.home.path, c.st.sql})
		return true
	}
	return false
}

func (s *session) parseCall(c *sentCall) (err error) {
	c.st, err = s.parse(c.ctx, c.sql, c.args)
	return err
}

// describeCalls finds or prepares the calls' statements, and settles the calls for which that goes wrong.
func (s *session) describeCalls(ctx context.Context, calls []sentCall) []sentCall {
	var missing []statementKey
	for i := range calls {
		c := &calls[i]
		if c.st.mode != pgx.QueryExecModeCacheStatement {
			continue
		}
		key := statementKey{c.home.path, c.st.sql}
		c.kept = s.statements.kept(key)
		if c.known = c.kept != nil; c.known {
			c.st.desc = c.kept.desc
		} else {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return calls
	}
	found, lost := s.prepare(ctx, false, missing)
	lost = sayUnsent(lost)
	good := calls[:0]
	for i := range calls {
		c := &calls[i]
		err := lost
		if err == nil && c.st.mode == pgx.QueryExecModeCacheStatement && c.st.desc == nil {
			key := statementKey{c.home.path, c.st.sql}
			c.st.desc, err = found[key].desc, found[key].err
			c.kept = s.statements.kept(key)
		}
		if err != nil {
			c.end(nil, err)
			continue
		}
		good = append(good, *c)
	}
	return good
}
