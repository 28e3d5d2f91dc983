package router

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// query runs a statement and returns its rows, which hold no lease yet. Its error is about the shard.
func (s *session) query(ctx context.Context, h *home, sc scope, sql string, args []any) (*rows, error) {
	st, err := s.parse(ctx, sql, args)
	if err != nil {
		return nil, h.failed(err)
	}
	if !sc.held && callsProcedure(st.sql) {
		return nil, h.failed(errProcedure)
	}
	ctx, trace := s.host.trace.Query(ctx, s.conn, sql, args)
	answers, _, err := s.send(ctx, sc, []statement{st})
	if err != nil {
		trace.End(noTag, err)
		if sc.held {
			err = sayGone(err)
		}
		return nil, h.failed(err)
	}
	return &rows{
		Rows:    pgx.RowsFromResultReader(s.conn.TypeMap(), answers.ResultReader()),
		home:    h,
		conn:    s.conn,
		answers: answers,
		trace:   trace,
	}, nil
}
