package router

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// simpleResults are those of a batch in the simple protocol, which pgx sent. Callbacks get pgx's own.
type simpleResults struct {
	pgx.BatchResults
	session *session
	home    *home
	rows    pgx.Rows // of the last statement that was read with Query
}

// finishRows reads the rows that the caller has left open, which pgx does not do in this protocol.
func (r *simpleResults) finishRows() {
	if r.rows != nil {
		r.rows.Close()
	}
}

func (r *simpleResults) Exec() (pgconn.CommandTag, error) {
	r.finishRows()
	tag, err := r.BatchResults.Exec()
	return tag, r.home.failed(err)
}

func (r *simpleResults) Query() (pgx.Rows, error) {
	r.finishRows()
	inner, err := r.BatchResults.Query()
	if err != nil {
		err = r.home.failed(err)
		return failedRows{err}, err
	}
	r.rows = &rows{Rows: inner, home: r.home, conn: r.session.conn}
	return r.rows, nil
}

func (r *simpleResults) QueryRow() pgx.Row {
	rows, _ := r.Query()
	return row{rows}
}

func (r *simpleResults) Close() error {
	r.finishRows()
	err := r.BatchResults.Close()
	if sqlState(err) == "" { // a callback's, as it is
		return err
	}
	return r.home.failed(err)
}

// sendSimple sends a batch in the simple protocol. It takes a batch of its own to pgx, which would write into the
// caller's.
func (s *session) sendSimple(ctx context.Context, h *home, sc scope, b *pgx.Batch, all []statement) pgx.BatchResults {
	var batch pgx.Batch
	if !sc.held {
		batch.Queue(s.pathQuery(sc), sc.path)
	}
	for i, st := range all {
		batch.Queue(st.sql, st.args...).Fn = b.QueuedQueries[i].Fn
	}
	answers := s.conn.SendBatch(ctx, &batch)
	if !sc.held {
		_, _ = answers.Exec() // its error is that of the batch too
	}
	return &simpleResults{BatchResults: answers, session: s, home: h}
}
