package session

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/sqltext"
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
	s.leaving.begin(sc.alone())
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
	s.only[0] = st
	answers, _, err := s.send(ctx, sc, s.only[:])
	clear(s.only[:]) // the arguments are the caller's
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
		all[i] = statement{given: part.sql, sql: part.sql, mode: pgx.QueryExecModeExec}
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

// piece is one statement of a string of statements.
type piece struct {
	sql   string
	start int // in the string, in bytes
}

// pieces takes a string of statements apart at its semicolons, as psql does. Each piece is sent in a message that Postgres
// takes one statement from and no more: a string that is cut in the wrong place fails, with a syntax error.
func (s *Session) pieces(sql string) []piece {
	scanner := sqltext.Scanner{Text: sql, Escapes: s.escapes()}
	found, _ := scanner.Split()
	all := make([]piece, len(found))
	for i, statement := range found {
		all[i] = piece{sql: sql[statement.Before:statement.Semicolon], start: statement.Before}
	}
	return all
}

// escapes reports whether backslashes escape in the session's strings.
func (s *Session) escapes() bool {
	return s.Conn.PgConn().ParameterStatus("standard_conforming_strings") == "off"
}
