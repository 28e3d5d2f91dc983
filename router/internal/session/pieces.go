package session

import "github.com/kiloshard/kiloshard/internal/sqltext"

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
