package adopt

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// closeLimit bounds the end of a session after the caller's context has ended.
const closeLimit = 5 * time.Second

// inSnapshot calls fn in a transaction that is read only and sees one state of the database. fn may query with [apart].
func inSnapshot(ctx context.Context, host shards.Host, fn func(pgx.Tx) error) error {
	conn, err := connect.Open(ctx, host, func(c *pgx.ConnConfig) {
		connect.LimitLocks(c)
		c.RuntimeParams["application_name"] = "kiloshard adopt"
		c.RuntimeParams["default_transaction_read_only"] = "on" // also what follows
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		_ = conn.Close(ctx) // there is nothing to commit
	}()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	return connect.NameHolders(ctx, conn.PgConn(), fn(tx))
}

// apart calls fn in a subtransaction, and rolls that back: the transaction goes on after an error, and holds no lock on a table for
// longer than fn takes.
func apart(ctx context.Context, tx pgx.Tx, fn func(pgx.Tx) error) error {
	if _, err := tx.Exec(ctx, "savepoint apart"); err != nil {
		return err
	}
	err := fn(tx)
	if _, rollback := tx.Exec(ctx, "rollback to savepoint apart; release savepoint apart"); err == nil {
		err = rollback
	}
	return err
}
