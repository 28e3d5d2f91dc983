package router

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// statement is one SQL statement of a caller's on its way to the server.
type statement struct {
	sql          string
	args         []any
	mode         pgx.QueryExecMode
	formats      pgx.QueryResultFormats
	formatsByOID pgx.QueryResultFormatsByOID

	desc *pgconn.StatementDescription // once it is prepared
}

// parse takes apart the arguments of a call as pgx does: options come first, in any order.
func (s *session) parse(ctx context.Context, sql string, args []any) (statement, error) {
	st := statement{sql: sql, args: args, mode: s.host.mode}
	var rewriter pgx.QueryRewriter
	for options := true; options && len(st.args) > 0; {
		switch arg := st.args[0].(type) {
		case pgx.QueryResultFormats:
			st.formats = arg
		case pgx.QueryResultFormatsByOID:
			st.formatsByOID = arg
		case pgx.QueryExecMode:
			st.mode = arg
		case pgx.QueryRewriter:
			rewriter = arg
		default:
			options = false
			continue
		}
		st.args = st.args[1:]
	}
	if err := checkMode(st.mode); err != nil {
		return st, fmt.Errorf("pgx.QueryExecMode: %w", err)
	}
	if rewriter != nil {
		var err error
		if st.sql, st.args, err = rewriter.RewriteQuery(ctx, s.conn, st.sql, st.args); err != nil {
			return st, fmt.Errorf("rewrite query failed: %w", err)
		}
	}
	return st, nil
}

// queue encodes the statement and its arguments to the end of a batch, in the formats that pgx chooses.
func (s *session) queue(batch *pgconn.Batch, st *statement) error {
	if st.desc == nil {
		if err := s.encode(nil, st.args); err != nil {
			return err
		}
		batch.ExecParams(st.sql, s.encoder.ParamValues, nil, s.encoder.ParamFormats, s.encoder.ResultFormats)
		return nil
	}
	if want, got := len(st.desc.ParamOIDs), len(st.args); want != got {
		return fmt.Errorf("expected %d arguments, got %d", want, got)
	}
	if err := s.encode(st.desc, st.args); err != nil {
		return err
	}
	// The batch keeps the formats until the answer comes, the encoder writes over them with the next statement.
	formats := slices.Clone(s.encoder.ResultFormats)
	switch {
	case st.formatsByOID != nil:
		for i, field := range st.desc.Fields {
			formats[i] = st.formatsByOID[field.DataTypeOID]
		}
	case st.formats != nil:
		formats = st.formats
	}
	batch.ExecStatement(st.desc, s.encoder.ParamValues, s.encoder.ParamFormats, formats)
	return nil
}

func (s *session) encode(desc *pgconn.StatementDescription, args []any) error {
	return s.encoder.Build(s.conn.TypeMap(), desc, args)
}
