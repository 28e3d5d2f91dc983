package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
)

// prepared is the result of preparing one statement.
type prepared struct {
	desc    *pgconn.StatementDescription
	verdict verdict
	err     error
}

// prepare prepares statements, each under its path, closes those that were thrown out, and keeps the new ones. All of it
// is one round trip. Each statement has an entry and a Sync of its own: the path is set local to its implicit transaction,
// in which the server looks up the tables, and one that fails fails alone. Those that are prepared outlive that
// transaction. The error is one of the connection or an [entryError].
func (s *Session) prepare(ctx context.Context, missing map[statementKey]Scope) (map[statementKey]prepared, error) {
	s.sending, s.at = time.Now(), s.Path()
	found := make(map[statementKey]prepared, len(missing))
	pipeline := s.Conn.PgConn().StartPipeline(ctx)
	closing := s.statements.unwanted
	for _, name := range closing {
		pipeline.SendDeallocate(name)
	}
	if len(closing) > 0 {
		pipeline.SendPipelineSync()
	}
	var keys []statementKey
	all := s.withOwn(missing)
	for key, sc := range all {
		keys = append(keys, key)
		s.sendPrepare(pipeline, sc, key)
	}
	err := pipeline.Flush()
	if err == nil && len(closing) > 0 {
		var first prepared
		if first, err = s.readPrepared(pipeline, nil); err == nil && first.err == nil {
			s.statements.unwanted = slices.Delete(s.statements.unwanted, 0, len(closing))
		}
	}
	for _, key := range keys {
		if err != nil {
			break
		}
		trace := s.tracePrepare(ctx, key)
		var answer prepared
		sc := all[key]
		answer, err = s.readPrepared(pipeline, &sc)
		if answer.err == nil && err == nil && answer.desc == nil {
			err = fmt.Errorf("bug: %w", ErrNoAnswer)
		}
		trace.End(noTag, answer.err)
		if answer.err == nil && err == nil {
			answer.desc.SQL = key.sql
			if s.keeps(key) {
				answer.desc.Name = key.name()
			}
			if len(key.sql) <= texts.LongText {
				text := s.host.Texts.Of(key.sql)
				if s.asksVerdictOf(sc, key) {
					answer.verdict.learn(text, answer.desc)
				}
				s.statements.put(key, answer.desc, text)
			}
		}
		found[key] = answer
	}
	if closeErr := pipeline.Close(); err == nil && failure.SQLState(closeErr) == "" {
		err = closeErr
	}
	return found, err
}

// withOwn returns statements that are to be prepared with the router's own that are likely to run under their paths, and are not prepared yet.
func (s *Session) withOwn(missing map[statementKey]Scope) map[statementKey]Scope {
	all := maps.Clone(missing)
	for key, sc := range missing {
		for _, query := range s.ownFor(sc) {
			if own := (statementKey{key.path, query}); s.statements.get(own) == nil {
				all[own] = sc
			}
		}
	}
	return all
}

// sendPrepare queues the messages that prepare one statement. A name is closed before it is given out: to close one that does not exist
// is no error, so it does not matter what became of an earlier attempt.
func (s *Session) sendPrepare(pipeline *pgconn.Pipeline, sc Scope, key statementKey) {
	to := pipelineSender(pipeline)
	s.enter(&to, sc, false, "")
	name := ""
	if s.keeps(key) {
		name = key.name()
		pipeline.SendDeallocate(name)
	}
	pipeline.SendPrepare(name, key.sql, nil)
	if s.asksVerdictOf(sc, key) {
		s.sendVerdict(to, sc, key.sql)
	}
	pipeline.SendPipelineSync()
}

// keeps reports whether a statement is prepared under a name; else it is only described.
func (s *Session) keeps(key statementKey) bool { return !s.pooled && len(key.sql) <= texts.LongText }

// readPrepared reads the answers up to the next Sync, the first of them that to the entry into sc unless that is nil. The
// error is one of the connection.
func (s *Session) readPrepared(pipeline *pgconn.Pipeline, sc *Scope) (p prepared, err error) {
	for {
		result, problem := pipeline.GetResults()
		switch result := result.(type) {
		case nil:
			if problem == nil {
				problem = ErrNoAnswer
			}
		case *pgconn.PipelineSync:
			return p, nil
		case *pgconn.ResultReader:
			if sc != nil {
				problem = s.ReadEntry(*sc, result)
				break
			}
			p.verdict.read(result)
			_, problem = result.Close()
		case *pgconn.StatementDescription:
			p.desc = result
		}
		if sc != nil {
			problem, sc = s.EntryFailed(*sc, problem), nil
		}
		if problem != nil && p.err == nil && p.desc == nil { // else there is no verdict
			p.err = problem
		}
		if failure.Lost(problem) || problem != nil && failure.SQLState(problem) == "" {
			return p, problem
		}
	}
}

// tracePrepare begins the trace of a statement that is prepared.
func (s *Session) tracePrepare(ctx context.Context, key statementKey) tracers.Trace {
	if !s.host.Trace.Prepares() || key.own() {
		return tracers.Trace{} // a name costs time
	}
	return s.host.Trace.Prepare(ctx, s.Conn, key.name(), key.sql)
}
