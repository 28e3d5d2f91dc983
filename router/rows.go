package router

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kiloshard/kiloshard/router/internal/tracers"
)

var noTag pgconn.CommandTag

// rows are the rows of one statement. Closing them reads what is left of its answer and gives the connection back.
type rows struct {
	pgx.Rows
	home    *home
	conn    *pgx.Conn
	answers interface{ Close() error } // to be closed with the rows, or nil
	lease   *call                      // to be given back with the rows, or nil
	trace   tracers.Trace

	closed  bool
	scanErr error // what a caller did wrong, as pgx says it
	err     error // once closed
}

// Close may be called more than once.
func (r *rows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	if r.lease != nil {
		defer r.lease.release()
	}
	r.Rows.Close()
	err := r.Rows.Err()
	if r.answers != nil {
		// A constraint that is checked last fails here, after all rows.
		if closeErr := r.answers.Close(); err == nil {
			err = closeErr
		}
	}
	r.trace.End(r.Rows.CommandTag(), err)
	r.err = r.home.failed(err)
	if r.scanErr != nil {
		r.err = r.scanErr
	}
}

func (r *rows) Err() error { return r.err }

func (r *rows) Next() bool {
	if r.closed {
		return false
	}
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *rows) Scan(dest ...any) error {
	var err error
	scanner, whole := pgx.RowScanner(nil), false
	if len(dest) == 1 {
		scanner, whole = dest[0].(pgx.RowScanner)
	}
	if whole { // it gets these rows and not the inner ones, which know no connection
		err = scanner.ScanRow(r)
	} else {
		err = r.Rows.Scan(dest...)
	}
	return r.check(err)
}

func (r *rows) Values() ([]any, error) {
	values, err := r.Rows.Values()
	return values, r.check(err)
}

// check closes the rows after an error, as pgx does.
func (r *rows) check(err error) error {
	if err != nil && !r.closed {
		r.scanErr = err
		r.Close()
	}
	return err
}

// Conn returns nil outside of transactions and batches: which connection a statement goes down, and whether its rows are
// in memory, depends on what else is going on.
func (r *rows) Conn() *pgx.Conn {
	if r.lease != nil {
		return nil
	}
	return r.conn
}

// row is the first of some rows.
type row struct{ rows pgx.Rows }

// Scan closes the rows, whatever happens.
func (r row) Scan(dest ...any) error {
	defer r.rows.Close()
	if err := r.rows.Err(); err != nil {
		return err
	}
	for _, d := range dest {
		if _, ok := d.(*pgtype.DriverBytes); ok {
			return errors.New("cannot scan into *pgtype.DriverBytes from QueryRow")
		}
	}
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	_ = r.rows.Scan(dest...) // its error is that of the rows too
	r.rows.Close()
	return r.rows.Err()
}

// failedRows are those of a statement that failed before it had any.
type failedRows struct{ err error }

func (r failedRows) Close()                                       {}
func (r failedRows) Err() error                                   { return r.err }
func (r failedRows) CommandTag() pgconn.CommandTag                { return noTag }
func (r failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r failedRows) Next() bool                                   { return false }
func (r failedRows) Scan(...any) error                            { return r.err }
func (r failedRows) Values() ([]any, error)                       { return nil, r.err }
func (r failedRows) RawValues() [][]byte                          { return nil }
func (r failedRows) Conn() *pgx.Conn                              { return nil }
func (r failedRows) TypeMap() *pgtype.Map                         { return nil }
