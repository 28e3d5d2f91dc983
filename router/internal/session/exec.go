package session

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/texts"
)

// Exec runs SQL and returns the command tag of its last statement. All of it is one message, and so one transaction
// unless it says otherwise.
func (s *Session) Exec(ctx context.Context, sc Scope, sql string, args []any) (tag pgconn.CommandTag, err error) {
	st, err := s.parse(ctx, sql, args)
	if err != nil {
		return tag, err
	}
	if st.rewritten && !sc.held && s.host.Texts.Of(st.sql).Calls {
		return tag, errProcedureRewritten
	}
	ctx, trace := s.host.Trace.Query(ctx, s.Conn, sql, args)
	s.leaving.begin(sc)
	if len(st.args) == 0 {
		tag, err = s.execString(ctx, sc, st)
	} else {
		tag, err = s.execStatement(ctx, sc, st)
	}
	err = s.leaving.end(ctx, err)
	trace.End(tag, err)
	return tag, err
}

func (s *Session) execStatement(ctx context.Context, sc Scope, st statement) (pgconn.CommandTag, error) {
	answers, _, err := s.send(ctx, sc, []statement{st})
	if err != nil {
		return noTag, err
	}
	tag, _ := answers.ResultReader().Close() // its error is the answers' too
	return tag, answers.Close()
}

// execString runs a string of statements.
func (s *Session) execString(ctx context.Context, sc Scope, st statement) (tag pgconn.CommandTag, err error) {
	parts := s.pieces(st.sql)
	if len(parts) == 0 {
		parts = []piece{{st.sql, 0}}
	}
	all := make([]statement, len(parts))
	for i, part := range parts {
		all[i] = statement{sql: part.sql, mode: pgx.QueryExecModeExec}
	}
	answers, _, err := s.send(ctx, sc, all)
	if err != nil {
		return noTag, at(err, st.sql[:parts[0].start])
	}
	for i := range all {
		if i > 0 {
			if err := answers.next(); err != nil {
				return noTag, at(err, st.sql[:parts[i].start])
			}
		}
		if tag, err = answers.ResultReader().Close(); err != nil {
			return noTag, at(answers.Close(), st.sql[:parts[i].start])
		}
	}
	return tag, answers.Close()
}

// at makes the position in a server's error count from the beginning of a string of which the statement is a part.
func at(err error, before string) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Position > 0 {
		pgErr.Position += int32(utf8.RuneCountInString(before))
	}
	return err
}

// TxLeft returns an error if what was sent by itself has left a transaction open on its connection.
func TxLeft(conn *pgx.Conn) error {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return nil
	}
	return errTxLeft // the connection is closed
}

// callsProcedure reports whether SQL is a CALL or a DO, which may commit by themselves unless they are in a transaction.
func callsProcedure(sql string) bool {
	word := texts.FirstWord(sql)
	return word == "call" || word == "do"
}
