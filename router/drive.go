package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

// drive works for the calls that wait for a line, until it has no more to do.
func (l *line) drive(calls []*call) {
	for calls != nil {
		l.work(calls)
		runtime.Gosched() // those who have their answers may have a next question
		calls = l.finish(calls...)
	}
}

// work sends calls down the line together and hands their answers out. Those of one shard are a group: they share an entry,
// a transaction that the server holds to reading, and a Sync. The last statement of a group asks for the path: only if it
// is still the entry's are the answers of the group handed out, because a function behind a view or an operator may have
// moved it under its neighbours.
//
// Of what is not answered so, the callers ask again, each on a connection of its own. Nothing happens twice by this, for all
// of it only reads; and no caller waits for more than its group.
func (l *line) work(calls []*call) {
	ctx := context.Background() // the callers' may end, each by itself; see group.giveUp
	if err := l.ready(ctx); err != nil {
		for _, c := range calls {
			c.fail(l.host.failed(err))
		}
		return
	}
	group := calls[0].group
	if l.host.replica != nil {
		if calls = l.onServer(calls); len(calls) == 0 {
			return
		}
	}
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
	again := l.round(ctx, sent)
	if slices.ContainsFunc(again, func(c sentCall) bool { return c.moved }) {
		_ = l.session.setBase(ctx) // whoever has the line next enters for itself
	}
	renewed, others := partition(again, func(c sentCall) bool { return c.renewed })
	if len(renewed) > 0 && !l.session.broken() {
		// What failed as it would have failed without being prepared is not run twice.
		var more []sentCall
		renewed, more = l.session.describeCalls(ctx, renewed)
		others = append(others, more...)
	}
	others = append(others, renewed...)
	for i := range others {
		others[i].end(nil, errApart)
	}
}

// partition returns the calls for which something holds, and the others.
func partition(calls []sentCall, holds func(sentCall) bool) (those, others []sentCall) {
	for _, c := range calls {
		if holds(c) {
			those = append(those, c)
		} else {
			others = append(others, c)
		}
	}
	return those, others
}

// onServer returns the calls that want the server that the line leads to. The others fail.
func (l *line) onServer(calls []*call) []*call {
	return slices.DeleteFunc(slices.Clone(calls), func(c *call) bool {
		other := c.server != "" && c.server != l.session.server
		if other {
			c.fail(l.host.failed(errOtherServer))
		}
		return other
	})
}

// sentCall is a call with what is needed to send it.
type sentCall struct {
	*call
	st      statement
	kept    *keptStatement // nil if it is not prepared
	known   bool           // the statement was prepared before
	renewed bool           // it is sent again if its prepared statement was out of date
	before  statement      // as it was then

	moved bool  // the path of the session was not its own
	last  error // with which it failed
}

// round sends calls, those of one shard as a group, and reads their answers. It returns those whose callers are to ask again.
func (l *line) round(ctx context.Context, calls []sentCall) (again []sentCall) {
	s := l.session
	calls = s.settleBad(calls, s.parseCall)
	calls, again = s.describeCalls(ctx, calls)
	if len(calls) == 0 {
		return again
	}
	slices.SortStableFunc(calls, func(a, b sentCall) int { return cmp.Compare(a.home.number, b.home.number) })
	pipeline := s.conn.PgConn().StartPipeline(ctx)
	to := pipelineSender(pipeline)
	var groups [][]sentCall
	for rest := calls; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].home == rest[0].home {
			n++
		}
		var group []sentCall
		if group = s.sendGroup(to, rest[:n]); len(group) > 0 {
			pipeline.SendPipelineSync()
			groups = append(groups, group)
		}
		rest = rest[n:]
	}
	lost := pipeline.Flush()
	if pgconn.SafeToRetry(lost) {
		_ = pipeline.Close()
		return append(again, calls...)
	}
	for _, group := range groups { // while the server is at work
		for i := range group {
			group[i].start(s.conn, len(calls))
		}
	}
	unanswered := uint64(0)
	for _, group := range groups {
		if lost == nil {
			var more []sentCall
			more, lost = l.receiveGroup(pipeline, group)
			again = append(again, more...)
			if lost == nil {
				continue
			}
		}
		for i := range group {
			err := lost
			if failure.SQLState(err) == "" { // else the server has said why
				err = fmt.Errorf("%w: %w", ErrLost, lost)
			}
			if !group[i].settled.Load() {
				unanswered++
			}
			group[i].end(nil, err)
		}
	}
	if unanswered > 0 {
		l.host.lost.Add(unanswered)
		l.host.log.Warn("connection lost", slog.String("host", l.host.Name), slog.Uint64("unanswered", unanswered), slog.Any("error", lost))
	}
	_ = pipeline.Close() // what it says has been said to a call
	return again
}

// sendGroup sends the calls of one shard, and returns those that were sent. Others have been settled.
func (s *session) sendGroup(to sender, calls []sentCall) []sentCall {
	entered := false
	calls = s.settleBad(calls, func(c *sentCall) error {
		formats, err := s.encodeCall(c)
		if err != nil {
			return err
		}
		if !entered {
			s.own(to, readEntryName, readEntryQuery, s.entryValues(c.scope()))
			entered = true
		}
		if d := c.st.desc; d != nil && d.Name != "" {
			to.prepared(d, s.encoder.ParamValues, s.encoder.ParamFormats, formats)
			return nil
		}
		var oids []uint32
		if d := c.st.desc; d != nil {
			oids = d.ParamOIDs
		}
		to.params(c.st.sql, s.encoder.ParamValues, oids, s.encoder.ParamFormats, formats)
		return nil
	})
	if len(calls) > 1 {
		s.own(to, leaveName, leaveQuery, nil)
	}
	return calls
}

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
func (c *sentCall) end(a *answer, err error) {
	mine := c.claim()
	switch {
	case c.op == nil, mine && (errors.Is(err, errApart) || err != nil && !c.op.Told()), !mine && c.late.Load():
	default:
		tag := noTag
		if a != nil {
			tag = a.tag
		}
		if !mine && (err == nil || errors.Is(err, errApart)) {
			err = c.ctx.Err() // its caller has left
		}
		c.op.Finish(tag, err)
	}
	if mine {
		c.publish(a, c.home.failed(err))
	}
}

// settleBad does something with every call, settles those where it goes wrong, and returns the others. It reads the
// callers' arguments.
func (s *session) settleBad(calls []sentCall, do func(*sentCall) error) []sentCall {
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
	case err == nil || c.renewed:
		return false
	case gone(err):
		s.forget()
		c.renewed, c.before = true, statement{}
		return true
	case c.known && maybeStale(err):
		s.statements.drop(statementKey{c.home.path, c.st.sql})
		c.renewed, c.before = true, c.st
		return true
	}
	return false
}

func (s *session) parseCall(c *sentCall) (err error) {
	c.st, err = s.parse(c.ctx, c.sql, c.args)
	return err
}

// describeCalls finds or prepares the calls' statements, and settles the calls for which that goes wrong. It returns the
// good ones, and those that are to be tried again.
func (s *session) describeCalls(ctx context.Context, calls []sentCall) (good, again []sentCall) {
	missing := map[statementKey]scope{}
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
			c.st.desc = nil
			missing[key] = c.scope()
		}
	}
	lost := s.prepareMissing(ctx)
	if len(missing) == 0 && lost == nil {
		return calls, nil
	}
	var found map[statementKey]prepared
	if lost == nil && len(missing) > 0 {
		found, lost = s.prepare(ctx, missing)
	}
	lost = failure.BeforeSend(lost)
	good = calls[:0]
	for i := range calls {
		c := &calls[i]
		err := lost
		if err == nil && c.st.mode == pgx.QueryExecModeCacheStatement && c.st.desc == nil {
			key := statementKey{c.home.path, c.st.sql}
			c.st.desc, err = found[key].desc, found[key].err
			c.kept = s.statements.kept(key)
		}
		switch {
		case err == nil && c.before.desc != nil && sameShape(c.before, c.st):
			c.end(nil, c.last)
		case err == nil:
			c.before = statement{}
			good = append(good, *c)
		case entryState(err) == "42602":
			c.moved, c.last = true, err
			again = append(again, *c)
		default:
			c.end(nil, err)
		}
	}
	return good, again
}
