package router

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// query runs a statement and returns its rows, which give the lease back when they are closed if it is not nil. After an
// error it is not given back. The error is about the shard.
func (s *session) query(ctx context.Context, h *hostShard, held lease, sc scope, sql string, args []any) (pgx.Rows, error) {
	st, err := s.parse(ctx, sql, args)
	if err != nil {
		return nil, h.Failed(err)
	}
	if !sc.held && callsProcedure(st.sql) {
		return nil, h.Failed(errProcedure)
	}
	ctx, trace := s.host.Trace.Query(ctx, s.conn, sql, args)
	answers, _, err := s.send(ctx, sc, []statement{st})
	if err != nil {
		trace.End(noTag, err)
		return nil, h.Failed(err)
	}
	return &rows{
		Rows:    pgx.RowsFromResultReader(s.conn.TypeMap(), answers.ResultReader()),
		shard:   h,
		conn:    s.conn,
		answers: answers,
		lease:   held,
		trace:   trace,
	}, nil
}
