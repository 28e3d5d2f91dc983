package router

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// CopyFrom copies rows into a table with the COPY protocol, in a transaction of its own, and returns how many there
// were. A table name of one part is looked up as in any statement.
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
