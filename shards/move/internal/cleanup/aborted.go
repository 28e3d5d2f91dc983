package cleanup

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/large"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/sql"
)

// DropAborted drops the shard on the target, if the target's ledger has the move that made it. The fence of an earlier move stays.
func DropAborted(ctx context.Context, to *pgx.Conn, m ledger.Move) error {
	var ours bool
	query := `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND outcome IS NULL) AND NOT ` + sql.IsOldFence("$2::text")
	if err := to.QueryRow(ctx, query, m.ID, m.Schema).Scan(&ours); err != nil || !ours {
		return err
	}
	err := session.InTx(ctx, to, func(tx pgx.Tx) error {
		if err := large.Replace(ctx, tx, m.ID, nil); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DROP SCHEMA IF EXISTS "+m.Schema+" CASCADE")
		return err
	})
	if err != nil {
		return err
	}
	_, err = to.Exec(ctx, `UPDATE kiloshard.ledger SET current = false WHERE shard = $1 AND current AND to_regclass('kiloshard.ledger') IS NOT NULL`, m.Shard)
	if session.Code(err) == "42P01" { // no ledger
		return nil
	}
	return err
}

// abandoned returns the moves to a host that were aborted without it.
func abandoned(onTarget []ledger.Move, truth map[ledgerKey]ledger.Move) (left []ledger.Move) {
	for _, m := range onTarget {
		if m.Outcome == ledger.UnderWay && truth[ledgerKey{m.Source, m.ID}].Outcome == ledger.Aborted {
			left = append(left, m)
		}
	}
	return left
}

// dropAbandoned drops what such a move has made of its shard on the target, which is back, unless the map has it there.
func (s *Swept) dropAbandoned(ctx context.Context, m *shards.Map, conns *hosts.Conns, left ledger.Move) error {
	conn, err := conns.GetWithLedger(ctx, left.Target)
	if err != nil {
		return err
	}
	if err := claim.Lock(ctx, conn, left.Turn()); err != nil {
		return err
	}
	if err := replicate.DropMarkers(ctx, conn, left.ID); err != nil {
		return err
	}
	if left.Returns == "" && !(m.Has(left.Shard) && m.Host(left.Shard).Name == left.Target) {
		if err := DropAborted(ctx, conn, left); err != nil {
			return err
		}
		s.Removed = append(s.Removed, left.Target+": unfinished schema "+left.Schema)
	}
	return claim.SetOutcome(ctx, conn, left, ledger.Aborted)
}
