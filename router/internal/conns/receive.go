package conns

import (
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// The answers of a group are kept until it has ended. One that is longer than longAnswer, in bytes, is not, nor are those past
// groupAnswers of them together: they are asked for apart.
const (
	LongAnswer   = 256 << 10
	groupAnswers = 1 << 20
)

// receiveGroup reads what the server says to a group, up to its Sync, and settles its calls but those that it returns: their
// callers are to ask again, each apart. lost is an error that is the end of the connection.
func (l *line) receiveGroup(pipeline *pgconn.Pipeline, group []sentCall) (again []sentCall, lost error) {
	var problem error
	path, at := "", -1 // which result comes next: that of the entry, of the calls, of what asks for the path
	answers, kept := make([]*session.Answer, len(group)), 0
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
			return l.settleGroup(group, answers, path), nil
		case *pgconn.ResultReader:
			switch {
			case at < 0:
				_, err = result.Close()
			case at == len(group):
				read := result.Read()
				if err = read.Err; err == nil {
					path = string(read.Rows[0][0])
				}
			default:
				c, started := &group[at], time.Now()
				var size int
				answers[at], size, err = c.Receive(result, min(LongAnswer, groupAnswers-kept))
				switch {
				case answers[at] != nil:
					kept += size
				case size > LongAnswer:
					c.text.LongAnswers()
				}
				l.Texts.Observe(c.text, time.Since(started), at == 0)
			}
		}
		l.steps.Add(1)
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

// settleGroup hands out the answers of a group, if the path at its end was the entry's.
func (l *line) settleGroup(group []sentCall, answers []*session.Answer, path string) (again []sentCall) {
	moved := len(group) > 1 && path != group[0].shard.Path
	for i := range group {
		if moved {
			group[i].text.KeepAlone()
		}
		if moved || answers[i] == nil {
			again = append(again, group[i])
			continue
		}
		group[i].end(answers[i], nil)
	}
	return again
}

// settleFailed settles the call of a group that failed, or all if that was the entry. The others are to be asked for again: what
// comes after an error does not run, and what came before it was not seen to be answered under the group's path.
func (l *line) settleFailed(group []sentCall, at int, problem error) (again []sentCall) {
	for i := range group {
		c := &group[i]
		c.last = problem
		switch {
		case at < 0:
			c.last = session.EntryFailed(c.scope(), problem)
			c.moved = session.PathMoved(c.last)
			if c.moved || l.session.OutOfDate(&c.Read, c.scope(), problem) {
				again = append(again, *c)
				continue
			}
			c.end(nil, c.last)
		case i != at || l.session.OutOfDate(&c.Read, c.scope(), problem):
			again = append(again, *c)
		default:
			if len(group) > 1 {
				c.text.KeepAlone()
			}
			c.end(nil, problem)
		}
	}
	return again
}
