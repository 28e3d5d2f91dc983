package conns

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// work sends calls down the line together and hands their answers out. Those of one shard are a group: they share an entry,
// a transaction that the server holds to reading, and a Sync. The last statement of a group asks for the path: only if it
// is still the entry's are the answers of the group handed out, because a function behind a view or an operator may have
// moved it under its neighbours.
//
// Of what is not answered so, the callers ask again, each on a connection of its own. Nothing happens twice by this, for all
// of it only reads; and no caller waits for more than its group.
func (l *line) work(calls []*Request) {
	ctx := context.Background() // the callers' may end, each by itself; see group.giveUp
	if err := l.ready(ctx); err != nil {
		for _, c := range calls {
			c.fail(l.Failed(err))
		}
		return
	}
	group := calls[0].group
	if l.ServerOf != nil {
		if calls = l.onServer(calls); len(calls) == 0 {
			return
		}
	}
	group.begin(l.session.Conn.PgConn())
	defer func() {
		if !group.end() {
			_ = l.session.Conn.Close(ctx) // whatever it says, the connection is closed
		}
	}()
	sent := l.sending[:0]
	for _, c := range calls {
		sent = append(sent, sentCall{Request: c})
	}
	l.sending = sent
	defer clear(sent)
	again := l.round(ctx, sent)
	if slices.ContainsFunc(again, func(c sentCall) bool { return c.moved }) {
		_ = l.session.ResetPath(ctx) // whoever has the line next enters for itself
	}
	renewed, others := partition(again, func(c sentCall) bool { return c.Renewed() })
	if len(renewed) > 0 && !l.session.Broken() {
		// What failed as it would have failed without being prepared is not run twice.
		var more []sentCall
		renewed, more = l.describeCalls(ctx, renewed)
		others = append(others, more...)
	}
	others = append(others, renewed...)
	for i := range others {
		others[i].end(nil, ErrApart)
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
func (l *line) onServer(calls []*Request) []*Request {
	return slices.DeleteFunc(slices.Clone(calls), func(c *Request) bool {
		other := c.server != "" && c.server != l.session.Server
		if other {
			c.fail(l.Failed(ErrOtherServer))
		}
		return other
	})
}

// round sends calls, those of one shard as a group, and reads their answers. It returns those whose callers are to ask again.
func (l *line) round(ctx context.Context, calls []sentCall) (again []sentCall) {
	s := l.session
	calls = settleBad(calls, func(c *sentCall) error { return s.ParseRead(c.ctx, &c.Read, c.sql, c.args) })
	calls, again = l.describeCalls(ctx, calls)
	if len(calls) == 0 {
		return again
	}
	slices.SortStableFunc(calls, func(a, b sentCall) int { return cmp.Compare(a.shard.Number, b.shard.Number) })
	pipeline := s.StartReads(ctx)
	var groups [][]sentCall
	for rest := calls; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].shard == rest[0].shard {
			n++
		}
		if group := sendGroup(&pipeline, rest[:n]); len(group) > 0 {
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
			group[i].start(s.Conn, len(calls))
		}
	}
	unanswered := uint64(0)
	for _, group := range groups {
		if lost == nil {
			var more []sentCall
			more, lost = l.receiveGroup(pipeline.Pipeline, group)
			again = append(again, more...)
			if lost == nil {
				continue
			}
		}
		for i := range group {
			err := lost
			if failure.SQLState(err) == "" { // else the server has said why
				err = fmt.Errorf("%w: %w", failure.ErrLost, lost)
			}
			if !group[i].settled.Load() {
				unanswered++
			}
			group[i].end(nil, err)
		}
	}
	if unanswered > 0 {
		l.lost.Add(unanswered)
		l.Log.Warn("connection lost", slog.String("host", l.Name), slog.Uint64("unanswered", unanswered), slog.Any("error", lost))
	}
	_ = pipeline.Close() // what it says has been said to a call
	return again
}

// sendGroup sends the calls of one shard, and returns those that were sent. Others have been settled.
func sendGroup(pipeline *session.Pipeline, calls []sentCall) []sentCall {
	first := true
	calls = settleBad(calls, func(c *sentCall) error {
		err := pipeline.Send(&c.Read, c.scope(), first)
		first = first && err != nil
		return err
	})
	if len(calls) > 0 {
		pipeline.EndGroup(len(calls))
	}
	return calls
}

// describeCalls finds or prepares the calls' statements, and settles the calls for which that goes wrong. It returns the
// good ones, and those that are to be tried again.
func (l *line) describeCalls(ctx context.Context, calls []sentCall) (good, again []sentCall) {
	s := l.session
	var missing session.Missing
	for i := range calls {
		s.FindRead(&calls[i].Read, calls[i].scope(), &missing)
	}
	did, lost := s.PrepareReads(ctx, &missing)
	if !did {
		return calls, nil
	}
	good = calls[:0]
	for i := range calls {
		c := &calls[i]
		err := lost
		if err == nil {
			err = s.TakePrepared(&c.Read, c.scope(), &missing)
		}
		switch {
		case err == nil && c.SameAsBefore():
			c.end(nil, c.last)
		case err == nil:
			good = append(good, *c)
		case session.PathMoved(err):
			c.moved, c.last = true, err
			again = append(again, *c)
		default:
			c.end(nil, err)
		}
	}
	return good, again
}
