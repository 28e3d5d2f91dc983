package sqldb

import (
	"context"
	"time"
)

// rollbackLimit is how long a ROLLBACK may take that nobody waits for any more.
const rollbackLimit = 10 * time.Second

// tx ends the transaction of a connection. ctx is the one with which it was begun: database/sql gives none to the end.
type tx struct {
	conn *conn
	ctx  context.Context
}

func (t tx) Commit() error {
	open := t.conn.tx
	t.conn.tx = nil
	return failed(open.Commit(t.ctx))
}

// Rollback is what database/sql does when ctx ends, so it cannot depend on ctx.
func (t tx) Rollback() error {
	open := t.conn.tx
	t.conn.tx = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), rollbackLimit)
	defer cancel()
	return failed(open.Rollback(ctx))
}
