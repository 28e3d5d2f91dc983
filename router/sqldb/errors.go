package sqldb

import (
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// serverError is an error of the server with the text of the shard's error. gorm's TranslateError encodes an error as JSON to find
// out its kind: it finds the fields of the [pgconn.PgError].
type serverError struct {
	error
	cause *pgconn.PgError
}

// failed converts an error of a shard for database/sql.
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
