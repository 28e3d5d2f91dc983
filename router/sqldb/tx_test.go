package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestTransactionOptions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		level    sql.IsolationLevel
		readOnly bool
		want     string // isolation level, and whether it is read only
	}{
		{sql.LevelDefault, false, "read committed off"},
		{sql.LevelReadUncommitted, false, "read uncommitted off"},
		{sql.LevelReadCommitted, true, "read committed on"},
		{sql.LevelRepeatableRead, false, "repeatable read off"},
		{sql.LevelSnapshot, false, "repeatable read off"},
		{sql.LevelSerializable, true, "serializable on"},
		{sql.LevelWriteCommitted, false, ""},
		{sql.LevelLinearizable, false, ""},
	}
	b, ctx := setup(t, modes[0], 1)
	db := b.open(t, 11)
	for _, test := range tests {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: test.level, ReadOnly: test.readOnly})
		if test.want == "" {
			if err == nil {
				t.Errorf("%s is what Postgres does not have", test.level)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var got string
		const query = `select current_setting('transaction_isolation') || ' ' || current_setting('transaction_read_only')`
		if err := errors.Join(tx.QueryRowContext(ctx, query).Scan(&got), tx.Rollback()); err != nil || got != test.want {
			t.Errorf("%s: %q, %v", test.level, got, err)
		}
	}
	b.isFree(ctx, t)
}

func TestTransactionEnds(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		b, ctx := setup(t, mode, 1)
		db := b.open(t, 11)
		count := func() (n int) {
			if err := db.QueryRowContext(ctx, `select count(*) from photos where owner = $1`, 110).Scan(&n); err != nil {
				t.Error(err)
			}
			return n
		}
		session := func() (pid int) {
			if err := db.QueryRowContext(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
				t.Error(err)
			}
			return pid
		}
		insert := func(begin context.Context) *sql.Tx {
			tx, err := db.BeginTx(begin, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(ctx, `insert into photos (owner) values ($1)`, 110); err != nil {
				t.Error(err)
			}
			return tx
		}
		before := count()
		if err := insert(ctx).Rollback(); err != nil || count() != before {
			t.Errorf("%s, after a rollback: %d rows, %v", mode, count()-before, err)
		}
		first := session()
		ending, end := context.WithCancel(ctx)
		tx := insert(ending)
		end() // database/sql rolls back
		if err := tx.Commit(); !errors.Is(err, context.Canceled) && !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("%s, after the end of the context: %v", mode, err)
		}
		if count() != before {
			t.Errorf("%s, after the end of the context: %d rows", mode, count()-before)
		}
		if session() != first {
			t.Errorf("%s: the end of a context cost a connection", mode)
		}
		if err := insert(ctx).Commit(); err != nil || count() != before+1 {
			t.Errorf("%s, after a commit: %d rows, %v", mode, count()-before, err)
		}
		b.isFree(ctx, t)
	}
}

// A transaction that is begun inside another, or forgotten by who gives its connection back, is no loss to others.
func TestTransactionsOfOneConn(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, modes[0], 1)
	db := b.open(t, 12)
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Raw(func(raw any) error {
		inner := raw.(driver.ConnBeginTx)
		if _, err := inner.BeginTx(ctx, driver.TxOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := inner.BeginTx(ctx, driver.TxOptions{}); err == nil {
			t.Error("a second transaction began inside the first")
		}
		_, err := raw.(driver.ExecerContext).ExecContext(ctx, `delete from photos`, nil)
		return err
	})
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Error(err)
	}
	var owner int
	if err := db.QueryRowContext(ctx, `select owner from photos`).Scan(&owner); err != nil || owner != 12 {
		t.Errorf("owner %d, %v", owner, err)
	}
	b.isFree(ctx, t)
}

// A commit that the server turned into a rollback is an error.
func TestCommitOfFailedTransaction(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, modes[0], 1)
	tx, err := b.open(t, 12).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(ctx, `insert into photos (id, owner) values ($1, $2)`, 1, 12)
	if pgErr := new(pgconn.PgError); !errors.As(err, &pgErr) || pgErr.Code != "23505" {
		t.Errorf("got %v", err)
	}
	if err := tx.Commit(); err == nil {
		t.Error("a transaction that had failed was committed")
	}
	b.isFree(ctx, t)
}
