package conns

import (
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/buffered"
	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/session"
)

// The answers of a group are kept until it has ended. One that is longer than LongAnswer, in bytes, is not, nor are those past
// groupAnswers of them together: they are sent again.
const (
	LongAnswer   = 256 << 10
	groupAnswers = 1 << 20
)

// receiveGroup reads what the server says to a group, up to its Sync, and settles its requests but those that it returns: their
// callers send them again, each by itself. sent is when the groups were sent, for the first of them, else zero. lost is an
// error that is the end of the connection.
func (l *lane) receiveGroup(pipeline *pgconn.Pipeline, group []sentRead, sent time.Time) (again []sentRead, lost error) {
	var problem error
	moved, at := false, -1 // which result comes next: that of the entry, of a request, of the question for the path
	if group[0].bare {
		at = 0
	}
	answers, kept := make([]*buffered.Answer, len(group)), 0
	for {
		if at >= 0 && at < len(group) {
			group[at].group.current.Store(group[at].text)
		}
		result, err := pipeline.GetResults()
		switch result := result.(type) {
		case nil:
			if err == nil {
				err = session.ErrNoAnswer
			}
		case *pgconn.PipelineSync:
			if problem != nil {
				return l.settleFailed(group, at, problem), nil
			}
			return l.settleGroup(group, answers, moved), nil
		case *pgconn.ResultReader:
			if !sent.IsZero() {
				l.Texts.ObserveRoundTrip(time.Since(sent))
				sent = time.Time{}
			}
			switch {
			case at < 0:
				err = l.session.ReadEntry(group[0].scope(), result)
			case at == len(group):
				read := result.Read()
				if err = read.Err; err == nil {
					moved = string(read.Rows[0][0]) != group[0].shard.Path
				}
			default:
				r, started := &group[at], time.Now()
				var size int
				answers[at], size, err = r.Receive(result, min(LongAnswer, groupAnswers-kept))
				switch {
				case answers[at] != nil:
					kept += size
				case size > LongAnswer:
					r.text.LongAnswers()
				}
				l.Texts.Observe(r.text, time.Since(started), false)
			}
		}
		l.progress.Add(1)
		switch {
		case err != nil && failure.SQLState(err) == "":
			return nil, err
		case err != nil && failure.EndsConn(err):
			return nil, err
		case err != nil:
			problem = err
		default:
			at++
		}
	}
}

// settleGroup hands out the answers of a group, unless the path has moved in it.
func (l *lane) settleGroup(group []sentRead, answers []*buffered.Answer, moved bool) (again []sentRead) {
	for i := range group {
		if moved {
			group[i].text.Forget()
			group[i].Forget()
		}
		if moved || answers[i] == nil {
			again = append(again, group[i])
			continue
		}
		group[i].end(answers[i], nil)
	}
	return again
}

// settleFailed settles the request of a group that failed, or all if that was the entry, or none of a group that was cancelled because it was
// late. The others are sent again: what
// comes after an error does not run, and what came before it was not seen to be answered under the group's path.
func (l *lane) settleFailed(group []sentRead, at int, problem error) (again []sentRead) {
	late := isLate(group[0].Request, problem)
	for i := range group {
		r := &group[i]
		r.last = problem
		switch {
		case late:
			if i == at {
				r.text.KeepAlone()
			}
			again = append(again, *r)
		case at < 0:
			r.last = l.session.EntryFailed(r.scope(), problem)
			r.moved = session.PathMoved(r.last)
			if r.moved || l.session.OutOfDate(&r.Read, r.scope(), problem) {
				again = append(again, *r)
				continue
			}
			r.end(nil, r.last)
		case i != at || l.session.OutOfDate(&r.Read, r.scope(), problem):
			again = append(again, *r)
		default:
			if len(group) > 1 {
				r.text.KeepAlone()
			}
			r.end(nil, problem)
		}
	}
	return again
}
