package router

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

var errSimpleQuery = errors.New("pgx.QueryExecModeSimpleProtocol in Query: expected default_query_exec_mode=simple_protocol for the host, or a transaction")

// query runs a statement and returns its rows, which hold no lease yet. Its error is about the shard.
func (s *session) query(ctx context.Context, h *home, sc scope, sql string, args []any) (*rows, error) {
	st, err := s.parse(ctx, sql, args)
	if err != nil {
		return nil, h.failed(err)
	}
	if !sc.held && callsProcedure(st.sql) {
		return nil, h.failed(errProcedure)
	}
	if st.mode == pgx.QueryExecModeSimpleProtocol {
		r, err := s.querySimple(ctx, h, sc, st)
		return r, h.failed(err)
	}
	ctx, trace := s.traceQuery(ctx, sql, args)
	answers, _, err := s.send(ctx, sc, []statement{st})
	if err != nil {
		trace.end(noTag, err)
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

// querySimple runs a statement in the simple protocol. Only pgx.Conn can put arguments into the text, and only its
// batch returns more than the first answer, which is that of the path's setting.
func (s *session) querySimple(ctx context.Context, h *home, sc scope, st statement) (*rows, error) {
	traced(ctx)
	if sc.held || st.sql == "" { // nothing to set, or nothing to set it for
		inner, err := s.conn.Query(ctx, st.sql, append([]any{st.mode}, st.args...)...)
		if err != nil {
			return nil, err
		}
		return &rows{Rows: inner, home: h, conn: s.conn}, nil
	}
	if s.host.mode != pgx.QueryExecModeSimpleProtocol {
		return nil, errSimpleQuery
	}
	var batch pgx.Batch
	batch.Queue(s.pathQuery(sc), sc.path)
	batch.Queue(st.sql, st.args...)
	answers := s.conn.SendBatch(ctx, &batch)
	_, _ = answers.Exec() // its error is that of the statement too
	inner, err := answers.Query()
	if err != nil {
		_ = answers.Close()
		return nil, err
	}
	return &rows{Rows: inner, home: h, conn: s.conn, answers: answers}, nil
}
