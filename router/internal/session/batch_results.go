package session

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/tracers"
)

var (
	errResultsClosed = errors.New("batch already closed")
	errNoResult      = errors.New("no more results in batch")
)

// results are those of a batch, without the one of the path's setting.
type results struct {
	session *Session
	ctx     context.Context
	shard   *Shard
	queued  []*pgx.QueuedQuery // the caller's; read only
	all     []statement
	answers *reply // open at the first; nil if there is none
	first   error  // with which the first statement was answered

	next   int   // into all
	rows   *rows // of the last statement that was read with Query
	err    error // ends everything
	closed bool
}

func (r *results) Exec() (pgconn.CommandTag, error) {
	reader, trace, err := r.advance()
	if err != nil {
		return noTag, err
	}
	tag, err := reader.Close()
	trace.End(tag, err)
	if err != nil {
		r.err = r.shard.Failed(err)
	}
	return tag, r.err
}

func (r *results) Query() (pgx.Rows, error) {
	reader, trace, err := r.advance()
	if err != nil {
		return FailedRows(err), err
	}
	r.rows = &rows{
		Rows:  pgx.RowsFromResultReader(r.session.Conn.TypeMap(), reader),
		shard: r.shard,
		conn:  r.session.Conn,
		trace: trace,
	}
	return r.rows, nil
}

func (r *results) QueryRow() pgx.Row {
	rows, _ := r.Query()
	return Row{Rows: rows}
}

func (r *results) Tx() pgx.Tx { return nil }

// Close calls the callbacks of the queries not read so far, reads the rest, and returns the first error.
func (r *results) Close() error {
	if r.closed {
		return r.err
	}
	r.finishRows()
	for r.err == nil && r.next < len(r.all) {
		fn := r.queued[r.next].Fn
		if fn == nil {
			_, _ = r.Exec() // its error is kept
		} else if err := fn(r); err != nil && r.err == nil {
			r.err = err
		}
		r.finishRows()
	}
	r.closed = true
	if r.answers != nil {
		if err := r.answers.Close(); r.err == nil {
			r.err = r.shard.Failed(err)
		}
	}
	r.session.host.Trace.BatchEnd(r.ctx, r.session.Conn, r.err)
	return r.err
}

// advance opens the answer of the next statement.
func (r *results) advance() (*pgconn.ResultReader, tracers.Trace, error) {
	r.finishRows()
	switch {
	case r.err != nil:
		return nil, tracers.Trace{}, r.err
	case r.closed:
		return nil, tracers.Trace{}, errResultsClosed
	case r.next == len(r.all):
		return nil, tracers.Trace{}, errNoResult
	}
	st := &r.all[r.next]
	r.next++
	trace := r.session.host.Trace.Answer(r.ctx, r.session.Conn, st.sql, st.args)
	err := r.first
	if r.next > 1 {
		err = r.answers.next()
	}
	if err != nil {
		trace.End(noTag, err)
		r.err = r.shard.Failed(err)
		return nil, trace, r.err
	}
	return r.answers.ResultReader(), trace, nil
}

// finishRows reads the rows that the caller has left open.
func (r *results) finishRows() {
	if r.rows == nil {
		return
	}
	r.rows.Close()
	if r.err == nil {
		r.err = r.rows.err
	}
	r.rows = nil
}

// firstError returns the error of a batch, or the one with which its first statement was answered.
func firstError(r *results, err error) error {
	if r != nil {
		return r.first
	}
	return err
}

// endUnread ends a batch whose first statement has failed, before any result was read.
func endUnread(r *results) {
	if r != nil {
		r.session.host.Trace.BatchEnd(r.ctx, r.session.Conn, r.first)
	}
}

// leasedResults give their connection back when they are closed.
type leasedResults struct {
	*results
	lease lease // nil once it was given back
}

// Close may be called more than once. It fails if the batch has left a transaction open.
func (r *leasedResults) Close() error {
	if r.lease == nil {
		return r.err
	}
	defer func() {
		r.lease.Release()
		r.lease = nil
	}()
	if err := r.results.Close(); err == nil {
		r.err = r.shard.Failed(TxLeft(r.session.Conn))
	}
	return r.err
}
