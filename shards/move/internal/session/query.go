package session

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/connect"
)

// Run runs statements as one message, and so as one transaction unless they say otherwise. After an error no transaction is open.
func Run(ctx context.Context, conn *pgx.Conn, statements string) error {
	_, err := conn.PgConn().Exec(ctx, statements).ReadAll()
	if err != nil && !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		rollback, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanUpLimit) // ctx may have ended by now
		defer cancel()
		if _, rollbackErr := conn.PgConn().Exec(rollback, "ROLLBACK").ReadAll(); rollbackErr != nil {
			Close(ctx, conn)
		}
	}
	return err
}

// Last runs statements and returns the first value of the last one's row.
func Last(ctx context.Context, conn *pgx.Conn, statements string) (string, error) {
	results, err := conn.PgConn().Exec(ctx, statements).ReadAll()
	if err != nil {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}

// Texts returns the one column of a query's rows.
func Texts(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Name quotes an identifier, with its schema if there are two parts.
func Name(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// Quoted doubles the quotes of a text, for use between quotes.
func Quoted(text string) string { return strings.ReplaceAll(text, "'", "''") }

// Code returns the SQLSTATE of an error, empty for none.
func Code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// Ignoring returns an error, nil if its SQLSTATE is the one given.
func Ignoring(err error, code string) error {
	if Code(err) == code {
		return nil
	}
	return err
}

// IsTransient reports whether a statement failed because of a lock, a time limit, or a change of another session at the same moment.
func IsTransient(err error) bool {
	switch Code(err) {
	case "57014", "25P03": // statement timeout, idle in a transaction
		return true
	case "XX000": // two sessions have granted something at the same moment
		return strings.Contains(err.Error(), "tuple concurrently updated")
	}
	return connect.IsLockTimeout(err)
}
