package session

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Query runs a statement and returns its rows, which give the lease back when they are closed if it is not nil. After an
// error it is not given back. The error is about the shard.
func (s *Session) Query(ctx context.Context, h *Shard, held lease, sc Scope, sql string, args []any) (pgx.Rows, error) {
	st, err := s.parse(ctx, sql, args)
	if err != nil {
		return nil, h.Failed(err)
	}
	if !sc.held && callsProcedure(st.sql) {
		return nil, h.Failed(errProcedure)
	}
	ctx, trace := s.host.Trace.Query(ctx, s.Conn, sql, args)
	all := s.only[:]
	all[0] = st
	switch {
	case sc.opens:
		all = []statement{{sql: "begin", mode: pgx.QueryExecModeExec}, st}
	case sc.ends != nil:
		all = append(all, statement{sql: "commit", mode: pgx.QueryExecModeExec})
	}
	s.leaving.begin(sc.alone())
	answers, sent, err := s.send(ctx, sc, all)
	clear(all) // the arguments are the caller's
	if err != nil {
		err = s.leaving.end(ctx, err)
		trace.End(noTag, err)
		if sc.held || sc.opens {
			err = withFenced(err)
		}
		if sc.ends != nil && sent {
			err = orUnknown(err)
		}
		return nil, h.Failed(err)
	}
	return &rows{
		Rows:    pgx.RowsFromResultReader(s.Conn.TypeMap(), answers.ResultReader()),
		shard:   h,
		conn:    s.Conn,
		answers: answers,
		lease:   held,
		trace:   trace,
		ends:    sc.ends,
		ctx:     ctx,
		leaving: s.leaving,
	}, nil
}
