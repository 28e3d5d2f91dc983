package sqldb

import (
	"context"
	"time"
)

// rollbackLimit is the time limit of a ROLLBACK whose caller has left.
const rollbackLimit = 10 * time.Second

// tx ends the transaction of a connection. ctx is the context of its BEGIN: database/sql passes none to the end.
type tx struct {
	conn *conn
	ctx  context.Context
}

func (t tx) Commit() error {
	open := t.conn.tx
	t.conn.tx = nil
	return failed(open.Commit(t.ctx))
}

// Rollback does not depend on ctx, because database/sql calls it when ctx ends.
func (t tx) Rollback() error {
	open := t.conn.tx
	t.conn.tx = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), rollbackLimit)
	defer cancel()
	return failed(open.Rollback(ctx))
}
