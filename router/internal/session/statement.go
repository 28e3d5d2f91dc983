package session

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/texts"
)

// statement is one SQL statement of a caller's on its way to the server.
type statement struct {
	given        string // by its caller, before a rewriter
	sql          string
	args         []any
	mode         pgx.QueryExecMode
	formats      pgx.QueryResultFormats
	formatsByOID pgx.QueryResultFormatsByOID

	desc      *pgconn.StatementDescription // once it is prepared
	mayKeep   bool                         // it is prepared, and may go without an entry
	rewritten bool                         // nobody has looked at its text before
}

// parse takes apart the arguments of a call as pgx does: options come first, in any order.
func (s *Session) parse(ctx context.Context, sql string, args []any) (statement, error) {
	st := statement{given: sql, sql: sql, args: args, mode: s.host.Mode}
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
	if err := CheckMode(st.mode); err != nil {
		return st, fmt.Errorf("pgx.QueryExecMode: %w", err)
	}
	if rewriter != nil {
		err := s.rewrite(ctx, &st, rewriter)
		return st, err
	}
	return st, nil
}

// rewrite has a rewriter of the caller's change a statement. A panic in it is an error, since the connection is others' too.
func (s *Session) rewrite(ctx context.Context, st *statement, by pgx.QueryRewriter) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic in the rewriter of a query: %v\n%s", cause, debug.Stack())
		}
	}()
	before := st.sql
	if st.sql, st.args, err = by.RewriteQuery(ctx, s.Conn, st.sql, st.args); err != nil {
		return fmt.Errorf("rewrite query failed: %w", err)
	}
	switch by.(type) {
	case pgx.NamedArgs, pgx.StrictNamedArgs: // they change no word of it
		return nil
	}
	if st.rewritten = st.sql != before; st.rewritten {
		return s.note(st.sql)
	}
	return nil
}

// queue sends the statement and its arguments, in the formats that pgx chooses.
func (s *Session) queue(to sender, st *statement) error {
	formats, err := s.encodeFor(st)
	switch {
	case err != nil:
		return err
	case st.desc == nil:
		to.params(st.sql, s.encoder.ParamValues, nil, s.encoder.ParamFormats, formats)
	case st.desc.Name == "":
		to.params(st.sql, s.encoder.ParamValues, st.desc.ParamOIDs, s.encoder.ParamFormats, formats)
	default:
		to.byName(st.desc, s.encoder.ParamValues, s.encoder.ParamFormats, formats)
	}
	return nil
}

// encodeFor encodes a statement's arguments, and returns the formats of its results.
func (s *Session) encodeFor(st *statement) (formats []int16, err error) {
	if st.desc != nil && len(st.desc.ParamOIDs) != len(st.args) {
		return nil, fmt.Errorf("expected %d arguments, got %d", len(st.desc.ParamOIDs), len(st.args))
	}
	if err := s.encode(st.desc, st.args); err != nil {
		return nil, err
	}
	switch {
	case st.desc != nil && st.formatsByOID != nil:
		formats = make([]int16, len(st.desc.Fields))
		for i, field := range st.desc.Fields {
			formats[i] = st.formatsByOID[field.DataTypeOID]
		}
		return formats, nil
	case st.desc != nil && st.formats != nil:
		return st.formats, nil
	}
	// Formats are kept until the answer comes, and the encoder writes over them with the next statement.
	return slices.Clone(s.encoder.ResultFormats), nil
}

// encode encodes arguments. A method of one that panics is an error, since the connection is others' too.
func (s *Session) encode(desc *pgconn.StatementDescription, args []any) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.encoder = pgx.ExtendedQueryBuilder{}
			err = fmt.Errorf("panic while the arguments were encoded: %v\n%s", cause, debug.Stack())
		}
	}()
	return s.encoder.Build(s.Conn.TypeMap(), desc, args)
}

// note looks at a caller's SQL before it runs in a transaction or a batch.
func (s *Session) note(sql string) error {
	t := s.host.Texts.Of(sql)
	s.Left = s.Left || t.Leaves
	return Refused(t)
}

// Refused returns why a shard does not take SQL.
func Refused(t *texts.Text) error {
	switch {
	case t.Listen:
		return errListen
	case t.CopyIn:
		return errCopyIn
	}
	return nil
}

// CheckMode refuses the modes that ask for a statement's description in one round trip and send the statement in
// another, without a name for it: the description would have to be asked for under the shard's path each time, or be
// cached as if it were the same in all shards. It refuses the simple protocol too, because a text may hide several
// statements there.
func CheckMode(mode pgx.QueryExecMode) error {
	switch mode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec:
		return nil
	}
	return fmt.Errorf("%s; expected cache_statement, or exec behind a pooler such as PgBouncer", mode)
}
