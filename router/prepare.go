package router

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	setPathName = namePrefix + "search_path"

	// The function is qualified since it runs before there is a path that can be trusted.
	setPathQuery = `select pg_catalog.set_config('search_path', $1, true)`
)

// prepare prepares statements under the scope's path, closes those that were thrown out, and keeps the new ones. All
// of it is one round trip, with one Sync: the path is set local to its implicit transaction, in which the server looks
// up the tables. The statements outlive that transaction, even if one of them fails it.
func (s *session) prepare(ctx context.Context, sc scope, missing []string) (map[string]*pgconn.StatementDescription, error) {
	slices.Sort(missing)
	missing = slices.Compact(missing)

	pipeline := s.conn.PgConn().StartPipeline(ctx)
	questions := s.ask(pipeline, sc, missing)
	err := pipeline.Sync()
	found := make(map[string]*pgconn.StatementDescription, len(missing))
	if err == nil {
		err = s.read(ctx, pipeline, questions, found)
	}
	if closeErr := pipeline.Close(); err == nil {
		err = closeErr
	}
	return found, err
}

// question is something that prepare asks the server to do.
type question struct {
	sql  string        // to prepare; empty for closing names
	keep *statementKey // of one of the caller's statements
	last bool          // of the names that were thrown out
}

// ask queues what prepare wants. A name is closed before it is given out: to close one that does not exist is no error,
// so it does not matter what became of an earlier attempt.
func (s *session) ask(pipeline *pgconn.Pipeline, sc scope, missing []string) (questions []question) {
	prepare := func(name, sql string, keep *statementKey) {
		pipeline.SendDeallocate(name)
		pipeline.SendPrepare(name, sql, nil)
		questions = append(questions, question{}, question{sql: sql, keep: keep})
	}
	for i, name := range s.statements.unwanted {
		pipeline.SendDeallocate(name)
		questions = append(questions, question{last: i+1 == len(s.statements.unwanted)})
	}
	if !sc.held {
		if s.setPath == nil && s.host.mode == pgx.QueryExecModeCacheStatement {
			prepare(setPathName, setPathQuery, nil)
		}
		pipeline.SendQueryParams(setPathQuery, [][]byte{[]byte(sc.path)}, nil, nil, nil)
		questions = append(questions, question{})
	}
	for _, sql := range missing {
		key := statementKey{sc.path, sql}
		prepare(key.name(), sql, &key)
	}
	return questions
}

// read takes in the answers, up to the first error.
func (s *session) read(ctx context.Context, pipeline *pgconn.Pipeline, questions []question, found map[string]*pgconn.StatementDescription) error {
	for _, q := range questions {
		trace := s.tracePrepare(ctx, q.keep)
		answer, err := pipeline.GetResults()
		if reader, ok := answer.(*pgconn.ResultReader); ok {
			_, err = reader.Close()
		}
		trace.end(pgconn.CommandTag{}, err)
		if err != nil {
			return err
		}
		desc, isDescription := answer.(*pgconn.StatementDescription)
		switch {
		case q.last:
			s.statements.unwanted = nil
		case q.sql == "" && q.keep == nil:
		case !isDescription:
			return fmt.Errorf("bug: prepare was answered with %T", answer)
		case q.keep == nil:
			desc.Name, desc.SQL = setPathName, q.sql
			s.setPath = desc
		default:
			desc.Name, desc.SQL = q.keep.name(), q.sql
			found[q.sql] = desc
			s.statements.put(*q.keep, desc)
		}
	}
	return nil
}
