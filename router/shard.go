package router

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/shards"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// home is what a router knows of one shard.
type home struct {
	session.Shard
	host *host
	next atomic.Pointer[home] // the home that the shard went to, nil as long as this is it

	copies atomic.Pointer[copies] // where it is read by readers

	// Guarded by the mu of the host's lines.
	lines    []*line // that have worked for it
	inflight int     // the calls under way
	load     float64 // the mean of that
}

// Shard is the handle of one shard, with the methods of a [pgxpool.Pool]. Unqualified names in the SQL are those of the
// shard's schema. Each method goes to the host where the map has the shard when it is called. A Shard is a small value that
// costs nothing to make and is safe for concurrent use. Two handles that a router returns for one shard are equal, before
// and after the shard moves. The zero Shard belongs to no router and must not be used.
//
// An error of the server or the connection is a [shards.ShardError], which wraps pgx's error. A [shards.HostError] says
// that there was no connection to the host, and that nothing was sent. [pgx.ErrNoRows] and the other sentinels of pgx are
// returned as they are.
type Shard struct{ home *home }

// Number returns the shard's number.
func (s Shard) Number() shards.Number { return s.home.Number }

// Schema returns the name of the shard's schema, such as shard_00042.
func (s Shard) Schema() string { return s.home.now().Schema }

// Host returns the host on which the shard lives now.
func (s Shard) Host() shards.Host { return *s.home.now().host.Place.Load() }

// String returns the shard's number, schema and host.
func (s Shard) String() string {
	h := s.home.now()
	return fmt.Sprintf("shard %d (%s on %s)", h.Number, h.Schema, h.host.Name)
}

// Exec runs SQL and returns the command tag of its last statement. Without arguments the SQL may hold several
// statements, which run in one transaction; with arguments it is one statement.
//
// Statements that refuse to run in a transaction, such as VACUUM and CREATE INDEX CONCURRENTLY, fail. The package's
// section on limits tells of statements that end the transaction themselves.
func (s Shard) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if s.home.now().host.Texts.Of(sql).Calls {
		return s.execInTx(ctx, sql, args)
	}
	var t tries
	for {
		tag, c, err := s.exec(ctx, &t, sql, args)
		again, err := c.again(ctx, &t, err)
		if !again {
			return tag, err
		}
	}
}

// exec runs SQL once.
func (s Shard) exec(ctx context.Context, t *tries, sql string, args []any) (pgconn.CommandTag, *call, error) {
	c, err := s.home.ask(ctx, t, sql, args, len(args) == 0)
	switch {
	case err != nil:
		return pgconn.CommandTag{}, c, err
	case c.answer != nil:
		return c.answer.Tag, c, nil
	}
	defer c.Release()
	session, started := c.line.session, time.Now()
	tag, err := session.Exec(c.ctx, c.scope(), sql, args)
	c.home.host.Texts.Observe(c.text, time.Since(started), true)
	if err == nil && session.Conn.PgConn().TxStatus() != 'I' {
		err = errTxLeft
	}
	return tag, c, c.home.Failed(err)
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
// [pgx.QueryExecMode] (cache_statement and exec; simple_protocol only on hosts that have it by default), and
// [pgx.QueryResultFormats] or [pgx.QueryResultFormatsByOID].
//
//go:noinline
func (s Shard) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	var t tries
	if hint := together.Of(args); hint != nil {
		args = args[1:]
		if rows, done, err := s.queryTogether(ctx, &t, sql, args, hint); done {
			return rows, err
		}
	}
	return s.queryAgain(ctx, &t, sql, args) // were it inlined, QueryRow would not be, and its Row cost an allocation
}

// queryAgain runs a statement that has been tried before.
func (s Shard) queryAgain(ctx context.Context, t *tries, sql string, args []any) (pgx.Rows, error) {
	for {
		rows, c, err := s.query(ctx, t, sql, args)
		if err == nil {
			return rows, nil
		}
		if again, err := c.again(ctx, t, err); !again {
			return session.FailedRows(err), err
		}
	}
}

// query runs a statement once.
func (s Shard) query(ctx context.Context, t *tries, sql string, args []any) (pgx.Rows, *call, error) {
	c, err := s.home.ask(ctx, t, sql, args, false)
	if err != nil {
		return nil, c, err
	}
	rows, err := c.query(sql, args)
	return rows, c, err
}

// query returns the rows of a statement, whose call was given its answer or a line to ask for it.
func (c *call) query(sql string, args []any) (pgx.Rows, error) {
	if c.answer != nil {
		return c.answer.Rows(&c.home.Shard), nil
	}
	started := time.Now()
	rows, err := c.line.session.Query(c.ctx, &c.home.Shard, c, c.scope(), sql, args)
	c.home.host.Texts.Observe(c.text, time.Since(started), true)
	if err != nil {
		c.Release()
		return session.FailedRows(err), err
	}
	return rows, nil
}

// QueryRow runs a statement that returns one row at most. Errors wait for the row's Scan, and so may the connection: Scan
// must be called. It returns [pgx.ErrNoRows] if there is no row, and drops all rows but the first.
func (s Shard) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, _ := s.Query(ctx, sql, args...)
	return session.Row{Rows: rows}
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
