package session

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/kiloshard/kiloshard/router/operation"
)

func (t *tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	target, err := t.openTable(ctx, table, columns)
	for t.restart(ctx, err) {
		target, err = t.openTable(ctx, table, columns)
	}
	if err != nil {
		return 0, err
	}
	ctx = t.operation(ctx, operation.Copy, "COPY "+target[len(target)-1])
	if t.session.pooled {
		held := holdBack(t.session.Conn.PgConn(), source)
		defer held.end()
		source = held
	}
	copied, err := t.session.Conn.CopyFrom(ctx, target, columns, source)
	return copied, t.shard.Failed(err)
}

// heldBack are the rows of a COPY, which wait until the server has answered to the statement. pgx does not wait for that, and PgBouncer 1.26
// keeps a session of the server for ever if the end of a COPY has come before the answer.
type heldBack struct {
	pgx.CopyFromSource
	conn     *pgconn.PgConn
	answer   sync.Once
	answered chan struct{}
}

func holdBack(conn *pgconn.PgConn, source pgx.CopyFromSource) *heldBack {
	h := &heldBack{CopyFromSource: source, conn: conn, answered: make(chan struct{})}
	conn.Frontend().Trace(h, pgproto3.TracerOptions{SuppressTimestamps: true})
	return h
}

// Write is called with a line for each message. Those of the server begin with B.
func (h *heldBack) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("B\tCopyInResponse")) || bytes.HasPrefix(line, []byte("B\tErrorResponse")) {
		h.answer.Do(func() { close(h.answered) })
	}
	return len(line), nil
}

func (h *heldBack) Next() bool {
	select {
	case <-h.answered:
	case <-h.conn.CleanupDone(): // there will be no answer
	}
	return h.CopyFromSource.Next()
}

func (h *heldBack) end() {
	if !h.conn.IsClosed() {
		h.conn.Frontend().Untrace()
	}
}

// openTable finds the table, and takes the lock that COPY takes, by the plan of an INSERT that is not run: a shard that has moved is
// noticed before anything is read from the caller's source, and from then on it does not move until the transaction ends.
func (t *tx) openTable(ctx context.Context, table pgx.Identifier, columns []string) (pgx.Identifier, error) {
	table, err := t.qualify(ctx, table)
	if err != nil || len(columns) == 0 {
		return table, err
	}
	query := "explain (costs off) insert into " + table.Sanitize() + " (" + pgx.Identifier(columns[:1]).Sanitize()
	for _, c := range columns[1:] {
		query += ", " + pgx.Identifier{c}.Sanitize()
	}
	query += ") overriding system value select null" + strings.Repeat(", null", len(columns)-1) + " where false"
	_, err = t.session.Exec(ctx, t.scope(), query, []any{pgx.QueryExecModeExec})
	return table, t.shard.Failed(withFenced(err))
}

// qualify finds the schema of a table. pgx asks for the types of the columns only once a connection and a table's name:
// under a name of one part it would take those of the first shard for those of all.
func (t *tx) qualify(ctx context.Context, table pgx.Identifier) (pgx.Identifier, error) {
	if len(table) != 1 {
		return table, nil
	}
	const query = `select n.nspname::text
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = pg_catalog.to_regclass($1)`
	var schema string
	rows, err := t.session.Query(ctx, t.shard, nil, t.scope(), query, []any{table.Sanitize()})
	if err != nil {
		return table, err
	}
	err = Row{Rows: rows}.Scan(&schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return table, nil // COPY says best what is missing
	}
	return pgx.Identifier{schema, table[0]}, err
}
