package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
)

var (
	errInTx         = errors.New("a transaction has begun already; expected its Commit or Rollback")
	errLastInsertID = errors.New("Postgres has no LastInsertId; use a RETURNING clause")
)

// conn is a connection to database/sql: a shard, and the transaction that has begun, if any. database/sql lets one goroutine at a
// time use it.
type conn struct {
	shard router.Shard
	tx    pgx.Tx // nil outside a transaction
}

// place runs statements: a shard, or a transaction in one.
type place interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (c *conn) place() place {
	if c.tx != nil {
		return c.tx
	}
	return c.shard
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	tag, err := c.place().Exec(ctx, query, values(nil, args)...)
	if err != nil {
		return nil, failed(err)
	}
	return result{tag}, nil
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	all := values([]any{formats}, args)
	if c.tx == nil {
		unprepared(all)
	}
	inner, err := c.place().Query(ctx, query, all...)
	if err != nil {
		return nil, failed(err)
	}
	return newRows(inner)
}

// CheckNamedValue accepts all values, because pgx knows more types than database/sql does.
func (c *conn) CheckNamedValue(value *driver.NamedValue) error {
	if value.Name != "" {
		return fmt.Errorf("sql.Named(%q): Postgres numbers its arguments; use $1, or pgx.NamedArgs", value.Name)
	}
	return nil
}

func (c *conn) Ping(ctx context.Context) error {
	const query = `-- ping`
	_, err := c.place().Exec(ctx, query)
	return failed(err)
}

// IsValid returns false for a connection with an open transaction, so that database/sql closes it.
func (c *conn) IsValid() bool { return c.tx == nil }

func (c *conn) Close() error {
	if c.tx == nil {
		return nil
	}
	return tx{c, context.Background()}.Rollback()
}

func (c *conn) Prepare(query string) (driver.Stmt, error) { return stmt{c, query}, nil }

func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.tx != nil {
		return nil, errInTx
	}
	var options pgx.TxOptions
	switch level := sql.IsolationLevel(opts.Isolation); level {
	case sql.LevelDefault:
	case sql.LevelReadUncommitted:
		options.IsoLevel = pgx.ReadUncommitted
	case sql.LevelReadCommitted:
		options.IsoLevel = pgx.ReadCommitted
	case sql.LevelRepeatableRead, sql.LevelSnapshot: // Postgres's repeatable read is called snapshot elsewhere
		options.IsoLevel = pgx.RepeatableRead
	case sql.LevelSerializable:
		options.IsoLevel = pgx.Serializable
	default:
		return nil, fmt.Errorf("isolation level %s; expected one that Postgres has", level)
	}
	if opts.ReadOnly {
		options.AccessMode = pgx.ReadOnly
	}
	begun, err := c.shard.BeginTx(ctx, options)
	if err != nil {
		return nil, failed(err)
	}
	c.tx = begun
	return tx{c, ctx}, nil
}

// stmt is the text of a statement. The router prepares it on the connections where it runs.
type stmt struct {
	*conn
	query string
}

func (s stmt) Close() error { return nil }

func (s stmt) NumInput() int { return -1 } // only the server knows

func (s stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

func (s stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

func (s stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.query, args)
}

func (s stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.query, args)
}

func named(args []driver.Value) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return all
}

// values returns the options and then the arguments, for pgx.
func values(options []any, args []driver.NamedValue) []any {
	for _, arg := range args {
		options = append(options, arg.Value)
	}
	return options
}

// unprepared replaces the option for the simple protocol, which a shard's Query does not have, with the mode exec. Both prepare
// nothing, which is why gorm's Migrator uses the first.
func unprepared(args []any) {
	for i, arg := range args {
		if arg == pgx.QueryExecModeSimpleProtocol {
			args[i] = pgx.QueryExecModeExec
		}
	}
}

type result struct{ tag pgconn.CommandTag }

func (r result) LastInsertId() (int64, error) { return 0, errLastInsertID }

func (r result) RowsAffected() (int64, error) { return r.tag.RowsAffected(), nil }
