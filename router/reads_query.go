package router

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/hedge"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/internal/texts"
)

// Query runs a statement and returns its rows, as [Shard.Query] does. When it returns, the first megabyte of the rows is in
// memory. After an error up to that point, Query tries the next server. Rows that fit in memory hold no connection; longer
// answers hold one until the rows are closed or read to the end.
func (r Reader) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	h := r.shard.placement.now().host
	text := h.Texts.Of(sql)
	if delay := h.hedgeDelay(text, r.reads); delay > 0 {
		if kept, ok := hedge.KeepArgs(args); ok {
			if rows, done, err := r.hedge(ctx, h, delay, text, sql, kept); done {
				return rows, err
			}
			args = kept
		}
	}
	return r.inTurn(ctx, text, sql, args)
}

// inTurn runs a statement on one server after another.
func (r Reader) inTurn(ctx context.Context, text *texts.Text, sql string, args []any) (pgx.Rows, error) {
	w, started := r.walk(), time.Now()
	for {
		at, err := w.next(ctx)
		if err != nil {
			return session.FailedRows(err), err
		}
		rows, err := at.query(ctx, sql, args)
		if err == nil {
			if r.reads.HedgeP95 {
				text.ReaderWaited(time.Since(started))
			}
			return rows, nil
		}
		if !w.goesOn(ctx, at, err, text.Repeats() || !text.Known() && isMissing(failure.SQLState(err))) {
			return session.FailedRows(w.last), w.last
		}
	}
}

// QueryRow runs a statement that returns one row at most, as [Shard.QueryRow] does.
func (r Reader) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, _ := r.Query(ctx, sql, args...)
	return session.Row{Rows: rows}
}

// Exec runs one statement that only reads and returns its command tag. It drops the rows.
func (r Reader) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows, err := r.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// CopyFrom fails with [ErrReadOnly]. Generated code needs the method.
func (r Reader) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, r.shard.placement.now().Failed(ErrReadOnly)
}
