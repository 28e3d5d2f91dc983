package conns

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// pipeline sends requests down the lane together and hands their answers out. Those of one shard are a group: they share an entry,
// a transaction that the server holds to reading, and a Sync. The catalog has vouched that nothing in them moves the path under its
// neighbours: see package session. A view may have been replaced since. So the router asks for the path at the end of a group, and
// hands out its answers only if that is the entry's.
//
// What is not answered so, its callers send again, each on a connection of its own. Nothing happens twice: all of it only
// reads. No caller waits for more than its group.
func (l *lane) pipeline(requests []*Request) {
	ctx := context.Background() // the callers' may end, each by itself; see group.giveUp
	group := requests[0].group
	if l.ServerOf != nil {
		if requests = l.onServer(requests); len(requests) == 0 {
			return
		}
	}
	group.begin(l.session)
	defer func() {
		if !group.end() {
			_ = l.session.Conn.Close(ctx) // an error leaves it closed, too
		}
	}()
	sent := l.sending[:0]
	for _, r := range requests {
		sent = append(sent, sentRead{Request: r})
	}
	l.sending = sent
	defer clear(sent)
	again := l.sendGroups(ctx, sent)
	if slices.ContainsFunc(again, func(r sentRead) bool { return r.moved }) {
		_ = l.session.ResetPath(ctx) // the next user of the lane sends its own entry
	}
	renewed, others := split(again, func(r sentRead) bool { return r.Renewed() })
	if len(renewed) > 0 && !l.session.Broken() {
		// What failed as it would have failed without being prepared is not run twice.
		var more []sentRead
		renewed, more = l.prepareAll(ctx, renewed)
		others = append(others, more...)
	}
	others = append(others, renewed...)
	for i := range others {
		others[i].end(nil, ErrApart)
	}
}

// split returns the requests for which something holds, and the others.
func split(reads []sentRead, holds func(sentRead) bool) (those, others []sentRead) {
	for _, r := range reads {
		if holds(r) {
			those = append(those, r)
		} else {
			others = append(others, r)
		}
	}
	return those, others
}

// onServer returns the requests that want the server that the lane leads to. The others fail.
func (l *lane) onServer(requests []*Request) []*Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r *Request) bool {
		other := r.server != "" && r.server != l.session.Server
		if other {
			r.fail(l.Failed(ErrOtherServer))
		}
		return other
	})
}

// sendGroups sends requests, those of one shard as a group, and reads their answers. It returns those whose callers are to ask again.
func (l *lane) sendGroups(ctx context.Context, reads []sentRead) (again []sentRead) {
	s := l.session
	reads = settleBad(reads, func(r *sentRead) error { return s.ParseRead(r.ctx, &r.Read, r.sql, r.args) })
	reads, again = l.prepareAll(ctx, reads)
	if slices.ContainsFunc(reads, func(r sentRead) bool { return !r.text.Repeats() }) { // the catalog says otherwise now
		good, apart := split(reads, func(r sentRead) bool { return r.text.Repeats() })
		reads, again = good, append(again, apart...)
	}
	if len(reads) == 0 {
		return again
	}
	path := s.Path()
	slices.SortStableFunc(reads, func(a, b sentRead) int {
		switch mine, others := a.shard.Path == path, b.shard.Path == path; {
		case mine == others:
			return cmp.Compare(a.shard.Number, b.shard.Number)
		case mine:
			return -1 // only the first group may go without an entry
		default:
			return 1
		}
	})
	pipeline := s.StartReads(ctx)
	var groups [][]sentRead
	for rest := reads; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].shard == rest[0].shard {
			n++
		}
		if group := sendGroup(&pipeline, rest[:n], len(groups) == 0); len(group) > 0 {
			groups = append(groups, group)
		}
		rest = rest[n:]
	}
	at := time.Now()
	lost := pipeline.Flush()
	if pgconn.SafeToRetry(lost) {
		_ = pipeline.Close()
		return append(again, reads...)
	}
	for _, group := range groups { // while the server is at work
		for i := range group {
			group[i].start(s.Conn, len(reads))
		}
	}
	unanswered := uint64(0)
	for _, group := range groups {
		if lost == nil {
			var more []sentRead
			more, lost = l.receiveGroup(pipeline.Pipeline, group, at)
			again, at = append(again, more...), time.Time{}
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
	_ = pipeline.Close() // what it says has been said to a request
	return again
}

// sendGroup sends the requests of one shard, and returns those that were sent. Others have been settled. first says that it is the first
// group of the pipeline.
func sendGroup(pipeline *session.Pipeline, reads []sentRead, first bool) []sentRead {
	sc := reads[0].scope()
	sc.Keeps = sc.Keeps && !slices.ContainsFunc(reads, func(r sentRead) bool { return !r.MayKeep() })
	bare := first && pipeline.KeepsPath(sc)
	enters := !bare
	reads = settleBad(reads, func(r *sentRead) error {
		if err := pipeline.Send(&r.Read, sc, enters); err != nil {
			return err
		}
		enters, r.bare = false, bare
		return nil
	})
	if len(reads) == 0 {
		return nil
	}
	if len(reads) > 1 {
		pipeline.AskPath()
	}
	pipeline.EndGroup(bare)
	return reads
}

// prepareAll finds or prepares the requests' statements, and settles the requests for which that goes wrong. It returns the
// good ones, and those to try again.
func (l *lane) prepareAll(ctx context.Context, reads []sentRead) (good, again []sentRead) {
	s := l.session
	var missing session.Missing
	for i := range reads {
		s.FindRead(&reads[i].Read, reads[i].scope(), &missing)
	}
	did, lost := s.PrepareReads(ctx, &missing)
	if !did {
		return reads, nil
	}
	good = reads[:0]
	for i := range reads {
		r := &reads[i]
		err := lost
		if err == nil {
			err = s.TakePrepared(&r.Read, r.scope(), &missing)
		}
		switch {
		case err == nil && r.SameAsBefore():
			r.end(nil, r.last)
		case err == nil:
			good = append(good, *r)
		case session.PathMoved(err):
			r.moved, r.last = true, err
			again = append(again, *r)
		case isLate(r.Request, err), s.OutOfDate(&r.Read, r.scope(), err):
			r.last = err
			again = append(again, *r)
		default:
			r.end(nil, err)
		}
	}
	return good, again
}
