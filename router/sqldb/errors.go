package sqldb

import (
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// serverError is an error of the server, in the words of the shard. An ORM that finds out what kind of error it has by
// writing it down as JSON, as gorm does with TranslateError, sees the fields of [pgconn.PgError] that it looks for.
type serverError struct {
	error
	cause *pgconn.PgError
}

// failed returns the error of a shard for database/sql.
func failed(err error) error {
	var cause *pgconn.PgError
	if errors.As(err, &cause) {
		return &serverError{err, cause}
	}
	return err
}

func (e *serverError) Unwrap() error { return e.error }

func (e *serverError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct{ Severity, Code, Message string }{e.cause.Severity, e.cause.Code, e.Error()})
}
