package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/router/operation"
	"github.com/kiloshard/kiloshard/shards"

	"github.com/kiloshard/kiloshard/router/internal/session"

	"github.com/kiloshard/kiloshard/router/internal/conns"
)

// Shard is the handle of one shard, with the methods of a [pgxpool.Pool]. Unqualified names in the SQL are those of the
// shard's schema. Each method goes to the host where the map has the shard when it is called. A Shard is a small value that
// costs nothing to make and is safe for concurrent use. Two handles that a router returns for one shard are equal, before
// and after the shard moves. The zero Shard belongs to no router and must not be used.
//
// An error of the server or the connection is a [shards.ShardError], which wraps pgx's error. A [shards.HostError] says
// that there was no connection to the host, and that nothing was sent. [pgx.ErrNoRows] and the other sentinels of pgx are
// returned as they are.
type Shard struct{ placement *placement }

// Number returns the shard's number.
func (s Shard) Number() shards.Number { return s.placement.Number }

// Schema returns the name of the shard's schema, such as shard_00042.
func (s Shard) Schema() string { return s.placement.now().Schema }

// Host returns the host on which the shard lives now.
func (s Shard) Host() shards.Host { return *s.placement.now().host.Place.Load() }

// String returns the shard's number, schema and host.
func (s Shard) String() string {
	p := s.placement.now()
	return fmt.Sprintf("shard %d (%s on %s)", p.Number, p.Schema, p.host.Name)
}

// Exec runs SQL and returns the command tag of its last statement. Without arguments the SQL may hold several
// statements, which run in one transaction; with arguments it is one statement.
//
// Statements that refuse to run in a transaction, such as VACUUM and CREATE INDEX CONCURRENTLY, fail. The package's
// section on limits lists statements that end the transaction themselves.
func (s Shard) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if s.placement.now().host.Texts.Of(sql).Calls {
		return s.execInTx(ctx, sql, args)
	}
	var t conns.Attempts
	for {
		tag, c, err := s.exec(ctx, &t, sql, args)
		again, err := c.Retry(ctx, &t, err)
		if !again {
			return tag, err
		}
	}
}

// exec runs SQL once.
func (s Shard) exec(ctx context.Context, t *conns.Attempts, sql string, args []any) (pgconn.CommandTag, *conns.Request, error) {
	c, err := s.placement.submit(ctx, t, sql, args, len(args) == 0)
	if err != nil {
		return pgconn.CommandTag{}, c, err
	}
	tag, err := c.Exec(sql, args)
	return tag, c, err
}

func (s Shard) execInTx(ctx context.Context, sql string, args []any) (tag pgconn.CommandTag, err error) {
	err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		tag, err = tx.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// Query runs a statement and returns its rows. They may hold a connection until they are closed or read to their end.
//
// As with [pgx.Conn.Query], the first arguments may be a [pgx.QueryRewriter] such as [pgx.NamedArgs], a
// [pgx.QueryExecMode] (cache_statement or exec, no other), and [pgx.QueryResultFormats] or [pgx.QueryResultFormatsByOID].
//
//go:noinline
func (s Shard) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	var t conns.Attempts
	if hint := together.Of(ctx); hint != nil {
		if rows, done, err := t.QueryTogether(ctx, &s.placement.now().Shard, sql, args, hint); done {
			return rows, err
		}
	}
	return s.queryAgain(ctx, &t, sql, args) // were it inlined, QueryRow would not be, and its Row cost an allocation
}

// queryAgain runs a statement that has been tried before.
func (s Shard) queryAgain(ctx context.Context, t *conns.Attempts, sql string, args []any) (pgx.Rows, error) {
	for {
		rows, c, err := s.query(ctx, t, sql, args)
		if err == nil {
			return rows, nil
		}
		if again, err := c.Retry(ctx, t, err); !again {
			return session.FailedRows(err), err
		}
	}
}

// query runs a statement once.
func (s Shard) query(ctx context.Context, t *conns.Attempts, sql string, args []any) (pgx.Rows, *conns.Request, error) {
	c, err := s.placement.submit(ctx, t, sql, args, false)
	if err != nil {
		return nil, c, err
	}
	rows, err := c.Query(sql, args)
	return rows, c, err
}

// QueryRow runs a statement that returns one row at most. Errors wait for the row's Scan, and so may the connection: Scan
// must be called. It returns [pgx.ErrNoRows] if there is no row, and drops all rows but the first.
func (s Shard) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, _ := s.Query(ctx, sql, args...)
	return session.Row{Rows: rows}
}

// SendBatch sends the queries of a batch together, as one transaction, and returns their results, which hold a
// connection until they are closed. Callbacks are called as those results say. The batch itself is left as it is.
//
// Statements that are new to the connection are prepared first, all in one round trip. A batch with Batch.BeginTx
// fails, and so does one that goes on after a statement which ends the transaction.
func (s Shard) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	var t conns.Attempts
	for {
		lease, err := s.placement.acquire(ctx, &t, operation.Batch, "")
		if err == nil {
			var results pgx.BatchResults
			if results, err = lease.SendBatch(b); err == nil {
				return results
			}
		}
		if again, err := lease.RetryLease(ctx, &t, false, err); !again {
			return pgx.FailedBatchResults(b, err)
		}
	}
}

// CopyFrom copies rows into a table with the COPY protocol, in a transaction of its own, and returns how many there
// were. A table name of one part is looked up as in any statement.
//
// Before a row of source is read the table is locked: a shard that has moved is found by then, and one that is to move waits for the
// end of the COPY.
func (s Shard) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (copied int64, err error) {
	err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		copied, err = tx.CopyFrom(ctx, table, columns, source)
		return err
	})
	if err != nil {
		return 0, err
	}
	return copied, nil
}

// NextID makes a new ID in the shard.
func (s Shard) NextID(ctx context.Context) (shards.ID, error) {
	const query = `select next_id()`
	var id shards.ID
	err := s.QueryRow(ctx, query).Scan(&id)
	return id, err
}

// NextIDs makes n new IDs in the shard, in rising order.
func (s Shard) NextIDs(ctx context.Context, n int) ([]shards.ID, error) {
	const query = `select array(select next_ids($1))` // an array costs a tenth of as many rows
	var ids []shards.ID
	err := s.QueryRow(ctx, query, n).Scan(&ids)
	return ids, err
}

// Begin begins a transaction in the shard with the server's defaults. See [Shard.BeginTx].
func (s Shard) Begin(ctx context.Context) (pgx.Tx, error) { return s.BeginTx(ctx, pgx.TxOptions{}) }

// BeginTx begins a transaction in the shard, in one round trip, or with a BeginQuery in two. ctx governs the beginning only:
// the transaction, and with it a connection, lasts until Commit or Rollback.
//
// The transaction is pgx's own but for this: Exec, Query, QueryRow and SendBatch prepare their statements for the
// shard, as the methods of Shard do; a name given to Prepare holds for the transaction only. What is sent by way of Conn has no
// entry: it finds the tables of the shard unless a function in the transaction has moved the search_path, and pgx prepares
// it under its text alone.
//
// Where the shard has moved to another host before the first statement in the transaction, that is run there, in a transaction begun there.
func (s Shard) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	tx, lease, err := s.beginAgain(ctx, opts)
	if err != nil {
		return nil, err
	}
	var t conns.Attempts
	session.Follows(tx, func(ctx context.Context, wait bool) bool {
		return lease.Gone() || wait && lease.AwaitMoved(ctx, &conns.Attempts{}) && lease.Gone()
	}, func(ctx context.Context, err error) (pgx.Tx, error) {
		if errors.Is(err, ErrMoved) {
			if !lease.AwaitMoved(ctx, &t) {
				return nil, err
			}
		} else if again, err := lease.RetryLease(ctx, &t, true, err); !again { // it has not begun
			return nil, err
		}
		var next pgx.Tx
		next, lease, err = s.beginAgain(ctx, opts)
		return next, err
	})
	return tx, nil
}

// beginAgain begins a transaction, as often as it takes: a BEGIN changes nothing.
func (s Shard) beginAgain(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, *conns.Request, error) {
	var t conns.Attempts
	for {
		tx, lease, err := s.begin(ctx, &t, opts)
		if err == nil {
			return tx, lease, nil
		}
		if again, err := lease.RetryLease(ctx, &t, true, err); !again {
			return nil, lease, err
		}
	}
}

// begin begins a transaction once.
func (s Shard) begin(ctx context.Context, t *conns.Attempts, opts pgx.TxOptions) (pgx.Tx, *conns.Request, error) {
	lease, err := s.placement.acquire(ctx, t, operation.Tx, "BEGIN")
	if err != nil {
		return nil, lease, err
	}
	begun, err := lease.Begin(opts, false)
	return begun, lease, err
}

// Tx runs fn in a transaction, which it commits if fn returns nil and else rolls back. It returns fn's error as it is.
// fn runs once; [Retry] is for those that may run again. [ErrOutcomeUnknown] says that the COMMIT had no answer.
func (s Shard) Tx(ctx context.Context, opts pgx.TxOptions, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s, opts, fn)
}
