package session

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kiloshard/kiloshard/router/internal/tracers"
)

var noTag pgconn.CommandTag

// lease is a connection that is given back.
type lease interface{ Release() }

// rows are the rows of one statement. Closing them reads what is left of its answer and gives the connection back.
type rows struct {
	pgx.Rows
	shard   *Shard
	conn    *pgx.Conn
	answers interface{ Close() error } // to be closed with the rows, or nil
	lease   lease                      // to be given back with the rows, or nil
	trace   tracers.Trace
	ends    *bool           // set to whether a transaction was committed with the statement, or nil
	ctx     context.Context // of the statement
	leaving *leaving        // of the connection; nil in a batch

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
		defer r.lease.Release()
	}
	r.Rows.Close()
	err := r.Rows.Err()
	if r.answers != nil {
		// A constraint that is checked last fails here, after all rows.
		if closeErr := r.answers.Close(); err == nil {
			err = closeErr
		}
	}
	if err = r.leaving.end(r.ctx, err); err == nil && r.lease != nil {
		err = TxLeft(r.conn)
	}
	if r.ends != nil {
		*r.ends = err == nil
		err = orUnknown(err)
	}
	r.trace.End(r.Rows.CommandTag(), err)
	r.err = r.shard.Failed(err)
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

// Row is the first of some rows.
type Row struct{ Rows pgx.Rows }

// Scan closes the rows, after an error too.
func (r Row) Scan(dest ...any) error {
	defer r.Rows.Close()
	if err := r.Rows.Err(); err != nil {
		return err
	}
	for _, d := range dest {
		if _, ok := d.(*pgtype.DriverBytes); ok {
			return errors.New("cannot scan into *pgtype.DriverBytes from QueryRow")
		}
	}
	if !r.Rows.Next() {
		if err := r.Rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	_ = r.Rows.Scan(dest...) // its error is that of the rows too
	r.Rows.Close()
	return r.Rows.Err()
}

// FailedRows returns the rows of a statement that failed before it had any.
func FailedRows(err error) pgx.Rows { return noRows{err} }

// noRows are those of a statement that failed before it had any.
type noRows struct{ err error }

func (r noRows) Close()                                       {}
func (r noRows) Err() error                                   { return r.err }
func (r noRows) CommandTag() pgconn.CommandTag                { return noTag }
func (r noRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r noRows) Next() bool                                   { return false }
func (r noRows) Scan(...any) error                            { return r.err }
func (r noRows) Values() ([]any, error)                       { return nil, r.err }
func (r noRows) RawValues() [][]byte                          { return nil }
func (r noRows) Conn() *pgx.Conn                              { return nil }
func (r noRows) TypeMap() *pgtype.Map                         { return nil }
