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

	setSafePathQuery = `select pg_catalog.set_config('transaction_read_only', 'on', true), pg_catalog.set_config('search_path', $1, true)`
)

// prepared is what became of one statement that was to be prepared.
type prepared struct {
	desc *pgconn.StatementDescription
	err  error
}

// prepare prepares statements, each under its path, closes those that were thrown out, and keeps the new ones. All of it
// is one round trip. Each statement has a Sync of its own: the path is set local to its implicit transaction, in which
// the server looks up the tables, and one that fails fails alone. Those that are prepared outlive that transaction. held
// says that a transaction of the caller's has the path. The error is one of the connection.
func (s *session) prepare(ctx context.Context, held bool, missing []statementKey) (map[statementKey]prepared, error) {
	found := make(map[statementKey]prepared, len(missing))
	for _, key := range missing {
		found[key] = prepared{}
	}
	pipeline := s.conn.PgConn().StartPipeline(ctx)
	closing := s.statements.unwanted
	for _, name := range closing {
		pipeline.SendDeallocate(name)
	}
	pathToo := s.setPath == nil && !s.pooled && s.host.mode == pgx.QueryExecModeCacheStatement
	if pathToo {
		pipeline.SendDeallocate(setPathName)
		pipeline.SendPrepare(setPathName, setPathQuery, nil)
	}
	if len(closing) > 0 || pathToo {
		pipeline.SendPipelineSync()
	}
	var keys []statementKey
	for key := range found {
		keys = append(keys, key)
		s.ask(pipeline, held, key)
	}
	err := pipeline.Flush()
	if err == nil && (len(closing) > 0 || pathToo) {
		var first prepared
		if first, err = readPrepared(pipeline); err == nil && first.err == nil {
			s.statements.unwanted = slices.Delete(s.statements.unwanted, 0, len(closing))
			if pathToo {
				s.setPath = first.desc
				s.setPath.Name, s.setPath.SQL = setPathName, setPathQuery
			}
		}
	}
	for _, key := range keys {
		if err != nil {
			break
		}
		trace := s.tracePrepare(ctx, &key)
		var answer prepared
		answer, err = readPrepared(pipeline)
		if answer.err == nil && err == nil && answer.desc == nil {
			err = fmt.Errorf("bug: %w", errNoAnswer)
		}
		trace.end(noTag, answer.err)
		if answer.err == nil && err == nil {
			if answer.desc.SQL = key.sql; !s.pooled {
				answer.desc.Name = key.name()
			}
			s.statements.put(key, answer.desc)
		}
		found[key] = answer
	}
	if closeErr := pipeline.Close(); err == nil && sqlState(closeErr) == "" {
		err = closeErr
	}
	return found, err
}

// ask queues what has one statement prepared. A name is closed before it is given out: to close one that does not exist
// is no error, so it does not matter what became of an earlier attempt. A pooler keeps no names: there the statement is
// only described.
func (s *session) ask(pipeline *pgconn.Pipeline, held bool, key statementKey) {
	if !held {
		pipeline.SendQueryParams(setPathQuery, [][]byte{[]byte(key.path)}, nil, nil, nil)
	}
	name := ""
	if !s.pooled {
		name = key.name()
		pipeline.SendDeallocate(name)
	}
	pipeline.SendPrepare(name, key.sql, nil)
	pipeline.SendPipelineSync()
}

// readPrepared reads the answers up to the next Sync. The error is one of the connection.
func readPrepared(pipeline *pgconn.Pipeline) (p prepared, err error) {
	for {
		result, failure := pipeline.GetResults()
		switch result := result.(type) {
		case nil:
			if failure == nil {
				failure = errNoAnswer
			}
		case *pgconn.PipelineSync:
			return p, nil
		case *pgconn.ResultReader:
			_, failure = result.Close()
		case *pgconn.StatementDescription:
			p.desc = result
		}
		if failure != nil && p.err == nil {
			p.err = failure
		}
		if lost(failure) || failure != nil && sqlState(failure) == "" {
			return p, failure
		}
	}
}
