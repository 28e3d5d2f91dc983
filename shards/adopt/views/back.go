package views

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// BackConfig configures [Back].
type BackConfig struct {
	Map      *shards.Map
	PerHost  int             // shards at a time. Defaults to 2
	Progress fanout.Progress // Defaults to none
}

// Back takes gate 1 away: the views, each shard's in one transaction, then the triggers that record, for which it waits for writers as
// [Make] does, then the ledger. The old tables are as they were. Back continues one that was interrupted. It returns the shards whose
// views it dropped.
//
// The error is [ledger.ErrNone] if nothing is left, [ledger.ErrBusy], a [GateError] at a later gate, or the [shards.PartialError] of
// [fanout.Run]. An object that depends on a view, and that Make has not made, fails its shard.
func Back(ctx context.Context, cfg BackConfig) (shards.Set, error) {
	host, err := Host(cfg.Map)
	if err != nil {
		return shards.Set{}, err
	}
	lock, err := ledger.Acquire(ctx, host)
	if err != nil {
		return shards.Set{}, err
	}
	defer lock.Release(ctx)
	conn, err := ledger.Open(ctx, host)
	if err != nil {
		return shards.Set{}, err
	}
	defer ledger.Close(ctx, conn)
	state, err := ledger.Read(ctx, conn)
	if err != nil {
		return shards.Set{}, err
	}
	if !AtViews(state) {
		return shards.Set{}, &GateError{state.Gate, "gate views, with all rows in the old tables"}
	}
	if state.Shards != cfg.Map.Len() {
		return shards.Set{}, &shards.FieldError{Field: "shards", Found: fmt.Sprint(cfg.Map.Len()), Expected: fmt.Sprintf("%d, as the adoption began", state.Shards)}
	}
	dropped, err := eachShard(ctx, Config{Map: cfg.Map, PerHost: cfg.PerHost, Progress: cfg.Progress}, slices.Collect(cfg.Map.All().All()), func(ctx context.Context, tx pgx.Tx, n shards.Number) error {
		if err := dropOne(ctx, tx, cfg.Map, n); err != nil {
			return err
		}
		return lock.Check(ctx, tx)
	})
	if err != nil {
		return dropped, err
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: connect.Begin}, func(tx pgx.Tx) error { return revokeRights(ctx, tx, ledger.Helper, "kiloshard") })
	if err != nil {
		return dropped, err
	}
	have, err := recorded(ctx, conn)
	if err != nil {
		return dropped, err
	}
	for _, r := range have {
		if err := unrecord(ctx, conn, r); err != nil {
			return dropped, err
		}
	}
	return dropped, ledger.Remove(ctx, conn)
}

// AtViews reports whether an adoption is at gate 1, and no shard's rows are on their way.
func AtViews(s *ledger.State) bool {
	return s.Gate == ledger.GateViews && s.At(ledger.StageViews).Len() == len(s.All)
}

// dropOne drops the views of one shard, and takes back what roles were given in its schema.
func dropOne(ctx context.Context, tx pgx.Tx, m *shards.Map, n shards.Number) error {
	schema := m.Schema(n)
	had, err := readExisting(ctx, tx, schema)
	if err != nil {
		return err
	}
	statements := []string{"set local lock_timeout = '30s'"}
	for _, e := range had {
		statements = append(statements, "drop view "+quote(schema, e.Name))
	}
	functions, err := oldFunctions(ctx, tx, schema)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, script(append(statements, functions...)), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	if err := revokeRights(ctx, tx, n, schema); err != nil {
		return err
	}
	return ledger.SetViews(ctx, tx, n, "")
}
