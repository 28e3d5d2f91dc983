package router

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

// aheadEnough is by how many statements a path has to be ahead of all others on a connection before the session gets it
// as its own, and aheadMost what is counted.
const (
	aheadEnough = 16
	aheadMost   = 64
)

// follow counts which path comes most often.
func (s *session) follow(path string) {
	switch {
	case s.lead == path:
		s.ahead = min(s.ahead+1, aheadMost)
	case s.ahead > 0:
		s.ahead--
	default:
		s.lead, s.ahead = path, 1
	}
}

// stay gives the session the path of the shard that it works for most of the time, so that it need not go with each
// statement. It is a round trip, and is done where it is sure that the session is the same all along.
func (s *session) stay(ctx context.Context) error {
	// Postgres 18 and later tell whenever the path changes.
	if told := s.conn.PgConn().ParameterStatus("search_path"); told != "" && told != s.at {
		s.at = ""
	}
	if s.ahead < aheadEnough || s.at == s.lead || !s.keeps {
		return nil
	}
	const query = `select pg_catalog.set_config('search_path', $1, false)`
	s.at = ""
	if _, err := s.conn.PgConn().ExecParams(ctx, query, [][]byte{[]byte(s.lead)}, nil, nil, nil).Close(); err != nil {
		return err
	}
	s.at = s.lead
	return nil
}

// forgetPath is for whenever somebody else may have changed the path.
func (s *session) forgetPath() { s.at = "" }

// sets tells whether a statement's path goes with it, or what else its transaction has to be told.
func (s *session) sets(sc scope) bool { return !sc.held && (s.at != sc.path || s.guards(sc)) }

// guards tells whether a statement's transaction has to be told that it must not write.
func (s *session) guards(sc scope) bool { return sc.safe && !s.safe && !sc.held }

// pathQuery returns the statement that sets the path for a transaction. A transaction that was told not to write by a
// query cannot be told otherwise any more.
func (s *session) pathQuery(sc scope) string {
	if s.guards(sc) {
		return setSafePathQuery
	}
	return setPathQuery
}

// sendPath sends the path with the statement that follows, for its transaction only.
func (s *session) sendPath(pipeline *pgconn.Pipeline, sc scope) {
	value := [][]byte{[]byte(sc.path)}
	if s.setPath != nil && !s.guards(sc) {
		pipeline.SendQueryStatement(s.setPath, value, nil, nil)
	} else {
		pipeline.SendQueryParams(s.pathQuery(sc), value, nil, nil, nil)
	}
}
