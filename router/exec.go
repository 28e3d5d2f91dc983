package router

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// exec runs SQL and returns the command tag of its last statement.
func (s *session) exec(ctx context.Context, sc scope, sql string, args []any) (tag pgconn.CommandTag, err error) {
	st, err := s.parse(ctx, sql, args)
	if err != nil {
		return tag, err
	}
	simple := st.mode == pgx.QueryExecModeSimpleProtocol
	if simple && len(st.args) > 0 { // only pgx.Conn can put arguments into the text; it traces too
		traced(ctx)
		prefix := s.prefix(sc, st.sql)
		tag, err = s.conn.Exec(ctx, prefix+st.sql, append([]any{st.mode}, st.args...)...)
		return tag, moved(err, prefix)
	}
	ctx, trace := s.traceQuery(ctx, sql, args)
	if len(st.args) == 0 {
		tag, err = s.execString(ctx, sc, st.sql)
	} else {
		tag, err = s.execStatement(ctx, sc, st)
	}
	trace.end(tag, err)
	return tag, err
}

func (s *session) execStatement(ctx context.Context, sc scope, st statement) (pgconn.CommandTag, error) {
	answers, _, err := s.send(ctx, sc, []statement{st})
	if err != nil {
		return noTag, err
	}
	tag, _ := answers.ResultReader().Close() // its error is the answers' too
	return tag, answers.Close()
}

// execString runs a string of statements in the simple protocol. They and the setting of the path before them are one
// implicit transaction.
func (s *session) execString(ctx context.Context, sc scope, sql string) (tag pgconn.CommandTag, err error) {
	prefix := s.prefix(sc, sql)
	answers := s.conn.PgConn().Exec(ctx, prefix+sql)
	own := prefix != ""
	for answers.NextResult() {
		result, _ := answers.ResultReader().Close() // its error is the answers' too
		if !own {
			tag = result
		}
		own = false
	}
	return tag, moved(answers.Close(), prefix)
}

// prefix is what sets the path in front of a string of statements. SET LOCAL is not a query, so that SET TRANSACTION
// may still follow. A procedure always has one: it makes an implicit transaction, in which it cannot commit.
func (s *session) prefix(sc scope, sql string) string {
	if sc.held || s.at == sc.path && !callsProcedure(sql) {
		return ""
	}
	return "set local search_path = " + sc.path + "; "
}

// moved makes the position in a server's error count from the end of the prefix.
func moved(err error, prefix string) error {
	var pgErr *pgconn.PgError
	if n := int32(utf8.RuneCountInString(prefix)); errors.As(err, &pgErr) && pgErr.Position > n {
		pgErr.Position -= n
	}
	return err
}

// endsTransaction tells whether SQL, or the tag of a command, begins with a word that ends a transaction.
func endsTransaction(sql string) bool {
	word, rest := firstWord(sql)
	switch strings.ToLower(word) {
	case "commit", "end", "abort":
		return true
	case "rollback":
		next, _ := firstWord(rest)
		return !strings.EqualFold(next, "to")
	}
	return false
}

// callsProcedure tells whether SQL is a CALL or a DO, which may commit by themselves unless they are in a transaction.
func callsProcedure(sql string) bool {
	word, _ := firstWord(sql)
	return strings.EqualFold(word, "call") || strings.EqualFold(word, "do")
}

// firstWord returns the first word of SQL and what follows it, past white space and comments.
func firstWord(sql string) (word, rest string) {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f;")
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(sql, "\n")
		case strings.HasPrefix(sql, "/*"):
			_, sql, _ = strings.Cut(sql, "*/")
		default:
			end := strings.IndexFunc(sql, func(r rune) bool { return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') })
			if end < 0 {
				end = len(sql)
			}
			return sql[:end], sql[end:]
		}
	}
}
