package router_test

import (
	"testing"
	"time"
)

// TestCloseBesideAnOpenTransaction has somebody never give back what he was given. Close ends all the same, and the transaction
// with it.
func TestCloseBesideAnOpenTransaction(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	b.LimitClose(100 * time.Millisecond)
	tx, err := b.shard(t, 1).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if _, err := tx.Exec(ctx, `select 1`); err == nil {
		t.Error("a transaction outlived Close")
	}
	_ = tx.Rollback(ctx) // gives it back
}
