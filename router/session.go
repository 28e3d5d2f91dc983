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
	safe bool   // nothing may be written
}

// session is what the router knows of one connection. Whoever holds the connection may use it, nobody else.
type session struct {
	host       *host
	conn       *pgx.Conn
	wire       *wire // nil if it is not known
	statements *statements
	setPath    *pgconn.StatementDescription // nil until it is prepared
	encoder    pgx.ExtendedQueryBuilder

	pooled bool // a pooler may give each transaction to another server session
	keeps  bool // what is set for the session stays until it is set again
	left   bool // something of a caller's may be left on it
	safe   bool // its transactions are such that nothing can be written

	at    string // the path that the session has between statements, empty if unknown
	lead  string // the path that has come most often of late
	ahead int    // by how many statements
}

// broken tells whether the connection is closed, be it that pgx does not know it yet.
func (s *session) broken() bool { return s.conn.IsClosed() || s.wire != nil && s.wire.cut.Load() }

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
func (s *session) send(ctx context.Context, sc scope, all []statement) (answers reply, sent bool, err error) {
	if !sc.held {
		s.follow(sc.path)
		if err := s.stay(ctx); err != nil {
			return reply{}, false, sayUnsent(err)
		}
	}
	known, err := s.describe(ctx, sc, all)
	if err != nil {
		return reply{}, false, sayUnsent(err)
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
	var missing []statementKey
	for i := range all {
		st := &all[i]
		if st.mode != pgx.QueryExecModeCacheStatement {
			continue
		}
		key := statementKey{sc.path, st.sql}
		if st.desc = s.statements.get(key); st.desc != nil {
			known = true
		} else {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return known, nil
	}
	found, err := s.prepare(ctx, sc.held, missing)
	if err != nil {
		return known, err
	}
	for i := range all {
		st := &all[i]
		if st.desc != nil || st.mode != pgx.QueryExecModeCacheStatement {
			continue
		}
		answer := found[statementKey{sc.path, st.sql}]
		if answer.err != nil {
			return known, answer.err
		}
		st.desc = answer.desc
	}
	return known, nil
}

// reply are the answers to statements that were sent together, or to a single one that went without a path.
type reply struct {
	*pgconn.MultiResultReader
	single *pgconn.ResultReader
}

// ResultReader returns the reader of the answer that is open.
func (r reply) ResultReader() *pgconn.ResultReader {
	if r.single != nil {
		return r.single
	}
	return r.MultiResultReader.ResultReader()
}

// Close reads what is left, and returns the first error.
func (r reply) Close() error {
	if r.single != nil {
		_, err := r.single.Close()
		return err
	}
	return r.MultiResultReader.Close()
}

// try sends the statements once. It tells whether they were sent.
func (s *session) try(ctx context.Context, sc scope, all []statement) (reply, bool, error) {
	sets := s.sets(sc)
	if !sets && len(all) == 1 && all[0].desc != nil && !s.pooled {
		return s.trySingle(ctx, &all[0])
	}
	var batch pgconn.Batch
	if sets {
		path := [][]byte{[]byte(sc.path)}
		if s.setPath != nil && !s.guards(sc) {
			batch.ExecStatement(s.setPath, path, nil, nil)
		} else {
			batch.ExecParams(s.pathQuery(sc), path, nil, nil, nil)
		}
	}
	for i := range all {
		if err := s.queue(&batch, &all[i]); err != nil {
			return reply{}, false, err
		}
	}
	answers := s.conn.PgConn().ExecBatch(ctx, &batch)
	if sets && answers.NextResult() {
		_, _ = answers.ResultReader().Close() // its error is the answers' too
	}
	if !answers.NextResult() {
		err := answers.Close()
		if err == nil {
			err = errNoAnswer
		}
		return reply{}, true, err
	}
	return reply{MultiResultReader: answers}, true, nil
}

// trySingle sends one prepared statement as pgx does.
func (s *session) trySingle(ctx context.Context, st *statement) (reply, bool, error) {
	formats, err := s.encodeFor(st)
	if err != nil {
		return reply{}, false, err
	}
	reader := s.conn.PgConn().ExecStatement(ctx, st.desc, s.encoder.ParamValues, s.encoder.ParamFormats, formats)
	if reader.FieldDescriptions() == nil { // there was an error, or there are no columns
		if _, err := reader.Close(); err != nil {
			return reply{}, true, err
		}
	}
	return reply{single: reader}, true, nil
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
