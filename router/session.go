package router

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// scope says where the unqualified names of a statement resolve.
type scope struct {
	path string // a search_path
	held bool   // the statement is in a transaction of the caller's, which has the path already
}

// session is what the router knows of one connection. Whoever holds the connection may use it, nobody else.
type session struct {
	host       *host
	conn       *pgx.Conn
	statements *statements
	setPath    *pgconn.StatementDescription // nil until it is prepared
	encoder    pgx.ExtendedQueryBuilder
}

const sessionKey = "github.com/kiloshard/kiloshard/router"

// sessionOf returns the session of a connection. It lives as long as the connection.
func sessionOf(conn *pgx.Conn, h *host) *session {
	data := conn.PgConn().CustomData()
	s, found := data[sessionKey].(*session)
	if !found {
		s = &session{host: h, conn: conn, statements: newStatements(h.statements)}
		data[sessionKey] = s
	}
	return s
}

// send sends statements together with one Sync, the search_path before them, and returns their answers, the first one
// opened. It tells whether they were sent. Everything up to a Sync is one transaction to Postgres, unless the caller has begun one: the path is set
// local to it and gone after it, and either all statements take effect or none. The caller closes the answers.
//
// Prepared statements can be lost or out of date without the router's knowing. If the first answer says so, or the
// arguments do not fit the description, the statements are prepared anew and sent a second time. Nothing happens twice
// by this: an error before the Sync has undone the implicit transaction with all that was in it, so that what is sent
// the second time is all there is. (Of what no rollback undoes there is only what any failed statement may leave too,
// such as a gap in a sequence; and procedures, which might commit, are not sent this way.) Nor has the caller seen any of the first answers. In a transaction of the caller's the
// error has undone what came before as well, and only the caller can repeat that.
func (s *session) send(ctx context.Context, sc scope, all []statement) (answers *pgconn.MultiResultReader, sent bool, err error) {
	known, err := s.describe(ctx, sc, all)
	if err != nil {
		return nil, false, err
	}
	answers, sent, err = s.try(ctx, sc, all)
	if err != nil && s.renew(ctx, sc, all, known, sent, err) {
		answers, sent, err = s.try(ctx, sc, all)
	}
	return answers, sent, err
}

// describe finds or prepares the statements that are to be prepared. It tells whether there was one that had been
// prepared before.
func (s *session) describe(ctx context.Context, sc scope, all []statement) (known bool, err error) {
	var missing []string
	needed := false
	for i := range all {
		st := &all[i]
		if st.mode != pgx.QueryExecModeCacheStatement {
			continue
		}
		needed = true
		if st.desc = s.statements.get(statementKey{sc.path, st.sql}); st.desc != nil {
			known = true
		} else {
			missing = append(missing, st.sql)
		}
	}
	needPath := needed && !sc.held && s.setPath == nil && s.host.mode == pgx.QueryExecModeCacheStatement
	if len(missing) == 0 && !needPath {
		return known, nil
	}
	found, err := s.prepare(ctx, sc, missing)
	if err != nil {
		return known, err
	}
	for i := range all {
		if st := &all[i]; st.desc == nil && st.mode == pgx.QueryExecModeCacheStatement {
			st.desc = found[st.sql]
		}
	}
	return known, nil
}

// try sends the statements once. It tells whether they were sent.
func (s *session) try(ctx context.Context, sc scope, all []statement) (*pgconn.MultiResultReader, bool, error) {
	var batch pgconn.Batch
	if !sc.held {
		path := [][]byte{[]byte(sc.path)}
		if s.setPath != nil {
			batch.ExecStatement(s.setPath, path, nil, nil)
		} else {
			batch.ExecParams(setPathQuery, path, nil, nil, nil)
		}
	}
	for i := range all {
		if err := s.queue(&batch, &all[i]); err != nil {
			return nil, false, err
		}
	}
	answers := s.conn.PgConn().ExecBatch(ctx, &batch)
	if !sc.held && answers.NextResult() {
		_, _ = answers.ResultReader().Close() // its error is the answers' too
	}
	if !answers.NextResult() {
		err := answers.Close()
		if err == nil {
			err = errNoAnswer
		}
		return nil, true, err
	}
	return answers, true, nil
}

// renew prepares the statements anew after an error if that may help, and tells whether they can be sent again.
func (s *session) renew(ctx context.Context, sc scope, all []statement, known, sent bool, cause error) bool {
	lost := gone(cause)
	switch {
	case lost:
		// Whoever closed one has closed all, as DISCARD ALL does.
		s.statements.dropAll()
		s.setPath = nil
	case known && (!sent || maybeStale(cause)):
		for _, st := range all {
			s.statements.drop(statementKey{sc.path, st.sql})
		}
	default:
		return false
	}
	if sent && sc.held {
		return false
	}
	before := slices.Clone(all)
	if _, err := s.describe(ctx, sc, all); err != nil {
		return false // the first error says more
	}
	return lost || !slices.EqualFunc(before, all, sameShape)
}

// sameShape tells whether a statement takes and returns the same types as before.
func sameShape(a, b statement) bool {
	if a.desc == nil || b.desc == nil {
		return a.desc == b.desc
	}
	return slices.Equal(a.desc.ParamOIDs, b.desc.ParamOIDs) &&
		slices.EqualFunc(a.desc.Fields, b.desc.Fields, func(a, b pgconn.FieldDescription) bool {
			return a.Name == b.Name && a.DataTypeOID == b.DataTypeOID && a.TypeModifier == b.TypeModifier
		})
}
